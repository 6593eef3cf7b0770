// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <chokepoint/base/units.hpp>
#include <chokepoint/report/catalogue_view.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace chokepoint::report {

using hardware::Accelerator;
using hardware::Dtype;
using hardware::FabricTemplate;
using hardware::HostTemplate;
using hardware::Nic;
using model::Model;

namespace {

std::string names(const std::vector<std::string>& aliases) { return fmt::format("{}", fmt::join(aliases, ", ")); }

std::string rate_or_dash(double flops_per_s) { return flops_per_s > 0 ? format_flop_rate(flops_per_s) : "-"; }

/// The rate that matrix products of mixed-precision training run at.
double half_precision_peak(const Accelerator& part) { return part.peak(Dtype::kBf16) > 0 ? part.peak(Dtype::kBf16) : part.peak(Dtype::kFp16); }

std::string gpu_links(const Accelerator& part) {
  if (part.nvlinks == 0) return "-";
  return fmt::format("{} x {}", part.nvlinks, format_rate(part.nvlink_bytes_per_s));
}

std::string peaks(const Accelerator& part) {
  std::vector<std::string> items;
  for (int i = 0; i < hardware::kDtypeCount; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    if (part.peak(dtype) > 0) items.push_back(fmt::format("{} {}", hardware::name(dtype), format_flop_rate(part.peak(dtype))));
  }
  return fmt::format("{}", fmt::join(items, ", "));
}

std::string attention(const Model& m) {
  if (m.mla) return "latent";
  if (m.kv_heads == 1) return "one kv head";
  return m.kv_heads == m.heads ? "all heads" : fmt::format("{} kv heads", m.kv_heads);
}

std::string interconnect(const HostTemplate& host) {
  using hardware::GpuInterconnect;
  const std::string kind(hardware::name(host.interconnect));
  return host.links_per_pair > 0 ? fmt::format("{} ({} links)", kind, host.links_per_pair) : host.interconnect == GpuInterconnect::kNone ? "PCIe only" : kind;
}

std::string nics_of(const HostTemplate& host) { return host.nic.empty() ? "-" : fmt::format("{} x {}", host.nic_count(), host.nic); }

std::string host_text(const HostTemplate& host, const Style& style) {
  const std::string switches = host.gpus_per_pcie_switch > 0
                                   ? fmt::format("{} GPU and {} NIC on each switch", host.gpus_per_pcie_switch, host.nics_per_pcie_switch)
                                   : "GPUs on the root complex";
  return style.bold(host.name) + "\n" +
         facts({{"also", names(host.aliases)},
                {"accelerators", fmt::format("{} x {}", host.gpus, host.accelerator)},
                {"joined by", interconnect(host)},
                {"sockets", fmt::format("{}", host.sockets)},
                {"PCIe", switches},
                {"network", nics_of(host)},
                {"GPUDirect", host.gpudirect_rdma ? "NICs read GPU memory" : "through host memory"},
                {"NVLink domain", host.nvlink_domain_hosts > 1 ? fmt::format("{} hosts", host.nvlink_domain_hosts) : ""},
                {"usual fabric", host.default_fabric},
                {"source", host.source}},
               style);
}

std::string leaf(const FabricTemplate& fabric) { return fabric.hosts_per_leaf > 0 ? fmt::format("{}", fabric.hosts_per_leaf) : "all"; }

std::string fabric_text(const FabricTemplate& fabric, const Style& style) {
  return style.bold(fabric.name) + "\n" +
         facts({{"also", names(fabric.aliases)},
                {"kind", fabric.kind},
                {"transport", fabric.transport},
                {"hosts per leaf", leaf(fabric)},
                {"oversubscription", fmt::format("{:g}:1", fabric.oversubscription)},
                {"source", fabric.source}},
               style);
}

std::string nic_text(const Nic& nic, const Style& style) {
  return style.bold(nic.name) + "\n" +
         facts({{"also", names(nic.aliases)},
                {"transport", nic.transport},
                {"line rate", fmt::format("{} ({:g} Gb/s)", format_rate(nic.bytes_per_s), nic.bytes_per_s * 8 / 1e9)},
                {"source", nic.source}},
               style);
}

}  // namespace

std::string accelerators_table(const std::vector<Accelerator>& parts, const Style& style) {
  std::vector<std::vector<std::string>> rows;
  for (const Accelerator& part : parts) {
    rows.push_back({part.name, std::string(hardware::name(part.architecture)), fmt::format("{}", part.compute_units),
                    format_bytes(part.memory_bytes), format_rate(part.memory_bytes_per_s), rate_or_dash(half_precision_peak(part)),
                    rate_or_dash(part.peak(Dtype::kFp8)), gpu_links(part), fmt::format("{}.0", part.pcie_generation)});
  }
  return table({{"accelerator"}, {"architecture"}, {"units", true}, {"memory", true}, {"bandwidth", true}, {"16 bit", true},
                {"fp8", true}, {"links, one way", true}, {"PCIe", true}},
               rows, style) +
         style.dim("Rates dense (without structured sparsity). 'chokepoint accelerators NAME' shows sources.") + "\n";
}

std::string accelerator_text(const Accelerator& part, const Style& style) {
  const std::string links = part.nvlinks > 0 ? fmt::format("{}, {} together one way", gpu_links(part), format_rate(part.nvlinks * part.nvlink_bytes_per_s)) : "none";
  return style.bold(part.name) + "\n" +
         facts({{"also", names(part.aliases)},
                {"vendor", part.vendor},
                {"architecture", std::string(hardware::name(part.architecture))},
                {"compute units", fmt::format("{}", part.compute_units)},
                {"memory", fmt::format("{} at {}", format_bytes(part.memory_bytes), format_rate(part.memory_bytes_per_s))},
                {"peak, dense", peaks(part)},
                {"links", links},
                {"PCIe", fmt::format("{}.0 x{}{}", part.pcie_generation, part.pcie_lanes, part.pcie_peer_to_peer ? "" : ", no peer-to-peer copies")},
                {"power", part.power_w > 0 ? fmt::format("{:g} W", part.power_w) : "not published"},
                {"source", part.source}},
               style);
}

std::string models_table(const std::vector<Model>& models, const Style& style) {
  std::vector<std::vector<std::string>> rows;
  for (const Model& m : models) {
    const model::ParameterCount count = model::count_parameters(m);
    rows.push_back({m.name, format_billions(count.total), m.moe ? format_billions(count.active) : "", fmt::format("{}", m.layers),
                    fmt::format("{}", m.hidden), fmt::format("{}", m.moe ? m.moe->expert_ffn_hidden : m.ffn_hidden), fmt::format("{}", m.heads), attention(m),
                    fmt::format("{}", m.vocab), m.moe ? fmt::format("{} of {}", m.moe->top_k, m.moe->experts) : ""});
  }
  return table({{"model"}, {"parameters", true}, {"active", true}, {"layers", true}, {"width", true}, {"MLP", true}, {"heads", true},
                {"keys and values"}, {"vocabulary", true}, {"experts", true}},
               rows, style);
}

namespace {

/// "23 Mamba-2, 23 experts, 6 attention"; empty where all layers are attention and MLP or experts.
std::string kinds_text(const Model& m) {
  if (m.pattern.empty() && m.sliding_window == 0 && m.encoder_layers == 0) return "";
  static constexpr const char* kMixers[] = {"", "attention", "windowed attention", "encoder attention", "attention to an encoder", "Mamba-2", "delta rule"};
  static constexpr const char* kChannels[] = {"", "MLP", "experts"};
  const model::LayerCounts counts = m.kinds();
  std::string text;
  for (int i = 0; i < model::LayerCounts::kKinds; ++i) {
    if (counts.at(i) == 0) continue;
    const model::LayerKind kind = model::LayerCounts::kind(i);
    const std::string mixer = kMixers[static_cast<std::size_t>(kind.mixer)];
    const std::string channel = kChannels[static_cast<std::size_t>(kind.channel)];
    text += fmt::format("{}{} x {}{}{}", text.empty() ? "" : ", ", counts.at(i), mixer, mixer.empty() || channel.empty() ? "" : " + ", channel);
  }
  return text;
}

double attending_layers(const Model& m) {
  const model::LayerCounts counts = m.kinds();
  double layers = 0;
  for (int i = 0; i < model::LayerCounts::kKinds; ++i) {
    const model::LayerKind kind = model::LayerCounts::kind(i);
    if (kind.attends()) layers += counts.at(i) * (kind.mixer == model::Mixer::kCross ? 2 : 1);
  }
  return layers;
}

/// FLOPs of a training token; of a sequence where the decoder's side has a length of its own.
std::string training_text(const Model& m) {
  constexpr int kEncoderTokens = 512;
  constexpr auto kConvention = model::FlopConvention::kModelFullAttention;
  if (m.decoder_sequence > 0) {
    return fmt::format("{} FLOP per sequence of {} tokens, {} on the decoder's side", format_billions(model::step_flops(m, kEncoderTokens, 1, kConvention)),
                       kEncoderTokens, m.decoder_sequence);
  }
  const double scores = 3 * attending_layers(m) * model::forward_flops(m, 1, false).attention_scores;
  return fmt::format("{} FLOP per token, without attention scores", format_billions(model::step_flops(m, 1, 1, kConvention) - scores));
}

}  // namespace

std::string model_text(const Model& m, const Style& style) {
  const model::ParameterCount count = model::count_parameters(m);
  const std::string published = !m.published_parameters ? ""
                                : m.published_tolerance > 0 ? fmt::format("about {}", format_billions(*m.published_parameters))
                                                            : format_count(*m.published_parameters);
  return style.bold(m.name) + "\n" +
         facts({{"also", names(m.aliases)},
                {"family", m.family},
                {"parameters", format_count(count.total)},
                {"published", published},
                {"active", m.moe ? format_count(count.active) : ""},
                {"layers", fmt::format("{} of width {}", m.layers, m.hidden)},
                {"kinds", kinds_text(m)},
                {"further tokens", m.further.modules > 0 ? fmt::format("{} modules, {} parameters", m.further.modules, format_count(count.further)) : ""},
                {"attention", fmt::format("{} heads of {}, {}", m.heads, m.head_dim, attention(m))},
                {"MLP", fmt::format("{}, {}", m.ffn_hidden, m.gated_mlp ? "gated" : "two matrices")},
                {"experts", m.moe ? fmt::format("{} of {}, each {}, shared {}", m.moe->top_k, m.moe->experts, m.moe->expert_ffn_hidden, m.moe->shared_ffn_hidden) : ""},
                {"vocabulary", fmt::format("{}{}", format_count(m.vocab), m.tied_embeddings ? ", head shares the embedding" : "")},
                {"positions", m.max_positions > 0 ? fmt::format("{} learned", format_count(m.max_positions)) : "no table"},
                {"training", training_text(m)},
                {"source", m.source}},
               style);
}

std::string clusters_table(const ClusterEntries& entries, const Style& style) {
  std::vector<std::vector<std::string>> rows;
  for (const HostTemplate& host : entries.hosts) {
    rows.push_back({host.name, fmt::format("{} x {}", host.gpus, host.accelerator), interconnect(host), nics_of(host), host.default_fabric});
  }
  std::string out = table({{"host"}, {"accelerators"}, {"joined by"}, {"network"}, {"usual fabric"}}, rows, style);
  rows.clear();
  for (const FabricTemplate& fabric : entries.fabrics) {
    rows.push_back({fabric.name, fabric.kind, fabric.transport, leaf(fabric), fmt::format("{:g}:1", fabric.oversubscription)});
  }
  out += "\n" + table({{"fabric"}, {"kind"}, {"transport"}, {"hosts per leaf", true}, {"oversubscription", true}}, rows, style);
  rows.clear();
  for (const Nic& nic : entries.nics) {
    rows.push_back({nic.name, nic.transport, fmt::format("{:g} Gb/s", nic.bytes_per_s * 8 / 1e9), names(nic.aliases)});
  }
  return out + "\n" + table({{"NIC"}, {"transport"}, {"line rate", true}, {"also"}}, rows, style) +
         style.dim("'chokepoint clusters NAME' shows sources.") + "\n";
}

std::string clusters_text(const ClusterEntries& entries, const Style& style) {
  std::string out;
  for (const HostTemplate& host : entries.hosts) out += host_text(host, style);
  for (const FabricTemplate& fabric : entries.fabrics) out += fabric_text(fabric, style);
  for (const Nic& nic : entries.nics) out += nic_text(nic, style);
  return out;
}

}  // namespace chokepoint::report
