// SPDX-License-Identifier: Apache-2.0
// The shell reader on anything: a launch line in front makes every input a script.
#include <chokepoint/frameworks/frameworks.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace chokepoint;
  const std::string text = "#!/bin/bash\n" + std::string(reinterpret_cast<const char*>(data), size) +
                           "\ntorchrun --nproc_per_node $N pretrain_gpt.py --num-layers 2 --tensor-model-parallel-size "
                           "$TP $ARGS \"${MORE[@]}\"\n";
  const frameworks::Open none = [](const std::string&) -> Result<std::string> { return fail("no such file"); };
  (void)frameworks::read(text, "in.sh", none);
  return 0;
}
