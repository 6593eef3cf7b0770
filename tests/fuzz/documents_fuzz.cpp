// SPDX-License-Identifier: Apache-2.0
// Any text through the whole chain: recognise, read, assemble, check, export. No crash, no hang.
#include <chokepoint/assemble/export.hpp>
#include <chokepoint/findings/findings.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto documents = chokepoint::wiring::read_documents(text, "fuzz");
  if (!documents) return 0;
  for (const auto& document : *documents) chokepoint::wiring::facts_of(document);
  auto assembly = chokepoint::assemble::assemble(std::move(*documents));
  if (!assembly) return 0;
  chokepoint::assemble::list_unknown(*assembly);
  chokepoint::findings::check(*assembly);
  if (assembly->fabric) chokepoint::topology::routes_of(*assembly->fabric, assembly->shape);
  const chokepoint::assemble::Anonymiser names(*assembly);
  names.apply(text.substr(0, 4096));
  names.apply(*assembly);
  chokepoint::assemble::to_dot(*assembly);
  (void)chokepoint::assemble::to_slurm(*assembly);
  chokepoint::assemble::to_yaml(assembly->cluster, "out/x");
  return 0;
}
