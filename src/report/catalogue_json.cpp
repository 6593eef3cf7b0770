// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/report/catalogue_view.hpp>
#include <nlohmann/json.hpp>

namespace chokepoint::report {

namespace {

using Json = nlohmann::ordered_json;
using hardware::Dtype;

Json accelerator_json(const hardware::Accelerator& part) {
  Json peaks = Json::object();
  for (int i = 0; i < hardware::kDtypeCount; ++i) {
    const auto dtype = static_cast<Dtype>(i);
    if (part.peak(dtype) > 0) peaks[std::string(hardware::name(dtype))] = part.peak(dtype);
  }
  return {{"name", part.name},
          {"aliases", part.aliases},
          {"vendor", part.vendor},
          {"architecture", hardware::name(part.architecture)},
          {"form", part.form},
          {"compute_units", part.compute_units},
          {"memory_bytes", part.memory_bytes},
          {"memory_bytes_per_s", part.memory_bytes_per_s},
          {"peak_flops_per_s", peaks},
          {"power_w", part.power_w > 0 ? Json(part.power_w) : Json()},
          {"links", part.nvlinks},
          {"link_bytes_per_s", part.nvlink_bytes_per_s},
          {"pcie_generation", part.pcie_generation},
          {"pcie_lanes", part.pcie_lanes},
          {"pcie_peer_to_peer", part.pcie_peer_to_peer},
          {"source", part.source}};
}

Json model_json(const model::Model& m) {
  const model::ParameterCount count = model::count_parameters(m);
  Json out = {{"name", m.name},
              {"aliases", m.aliases},
              {"family", m.family},
              {"parameters", count.total},
              {"active_parameters", count.active},
              {"published_parameters", m.published_parameters ? Json(*m.published_parameters) : Json()},
              {"published_tolerance", m.published_tolerance},
              {"layers", m.layers},
              {"hidden", m.hidden},
              {"ffn_hidden", m.ffn_hidden},
              {"heads", m.heads},
              {"kv_heads", m.kv_heads},
              {"head_dim", m.head_dim},
              {"vocab", m.vocab},
              {"max_positions", m.max_positions},
              {"gated_mlp", m.gated_mlp},
              {"tied_embeddings", m.tied_embeddings}};
  if (m.moe) {
    out["moe"] = {{"experts", m.moe->experts},
                  {"top_k", m.moe->top_k},
                  {"expert_ffn_hidden", m.moe->expert_ffn_hidden},
                  {"shared_ffn_hidden", m.moe->shared_ffn_hidden},
                  {"first_layer", m.moe->first_layer},
                  {"every", m.moe->every},
                  {"latent", m.moe->latent}};
  }
  if (!m.pattern.empty()) out["pattern"] = m.pattern;
  if (m.mamba) {
    out["mamba"] = {{"heads", m.mamba->heads}, {"head_dim", m.mamba->head_dim}, {"state", m.mamba->state},
                    {"groups", m.mamba->groups}, {"conv", m.mamba->conv}, {"chunk", m.mamba->chunk}};
  }
  if (m.delta) {
    out["delta"] = {{"key_heads", m.delta->key_heads}, {"key_dim", m.delta->key_dim}, {"value_heads", m.delta->value_heads},
                    {"value_dim", m.delta->value_dim}, {"conv", m.delta->conv}, {"chunk", m.delta->chunk}};
  }
  if (m.further.modules > 0) out["mtp"] = {{"modules", m.further.modules}, {"parameters", count.further}};
  if (m.sliding_window > 0) {
    out["sliding_window"] = m.sliding_window;
    out["full_attention_every"] = m.full_attention_every;
  }
  if (m.encoder_layers > 0) out["encoder_layers"] = m.encoder_layers;
  out["source"] = m.source;
  return out;
}

Json host_json(const hardware::HostTemplate& host) {
  return {{"name", host.name},
          {"aliases", host.aliases},
          {"accelerator", host.accelerator},
          {"gpus", host.gpus},
          {"interconnect", hardware::name(host.interconnect)},
          {"links_per_pair", host.links_per_pair},
          {"sockets", host.sockets},
          {"gpus_per_pcie_switch", host.gpus_per_pcie_switch},
          {"nic", host.nic},
          {"nics", host.nic_count()},
          {"gpudirect_rdma", host.gpudirect_rdma},
          {"nvlink_domain_hosts", host.nvlink_domain_hosts},
          {"fabric", host.default_fabric},
          {"source", host.source}};
}

Json fabric_json(const hardware::FabricTemplate& fabric) {
  return {{"name", fabric.name},
          {"aliases", fabric.aliases},
          {"kind", fabric.kind},
          {"transport", fabric.transport},
          {"hosts_per_leaf", fabric.hosts_per_leaf},
          {"oversubscription", fabric.oversubscription},
          {"source", fabric.source}};
}

Json nic_json(const hardware::Nic& nic) {
  return {{"name", nic.name},
          {"aliases", nic.aliases},
          {"transport", nic.transport},
          {"line_bytes_per_s", nic.bytes_per_s},
          {"ports", nic.ports},
          {"source", nic.source}};
}

template <class T>
Json list(const std::vector<T>& entries, Json (*one)(const T&)) {
  Json out = Json::array();
  for (const T& entry : entries) out.push_back(one(entry));
  return out;
}

}  // namespace

std::string accelerators_json(const std::vector<hardware::Accelerator>& parts) {
  const Json out = {{"schema", "chokepoint.accelerators/1"}, {"accelerators", list(parts, accelerator_json)}};
  return out.dump(2) + "\n";
}

std::string models_json(const std::vector<model::Model>& models) {
  const Json out = {{"schema", "chokepoint.models/1"}, {"models", list(models, model_json)}};
  return out.dump(2) + "\n";
}

std::string clusters_json(const ClusterEntries& entries) {
  const Json out = {{"schema", "chokepoint.clusters/1"},
                    {"hosts", list(entries.hosts, host_json)},
                    {"fabrics", list(entries.fabrics, fabric_json)},
                    {"nics", list(entries.nics, nic_json)}};
  return out.dump(2) + "\n";
}

}  // namespace chokepoint::report
