// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/simulate/constants.hpp>
#include <chokepoint/simulate/predict.hpp>

#include <utility>

namespace chokepoint::simulate {

std::vector<ParameterRef> refs(Constants& c) {
  constexpr const char* kFloor = "host floor: step time at micro-batch 1 against layers x micro-batches of small models (vTrain, one host)";
  constexpr const char* kBand = "class error, set so that the 80 % band holds 70-80 % of published rows (in sample)";
  constexpr const char* kFetch = "published ZeRO-3 steps move 45-70 GB/s per host over 200 GB/s of wire, most of it not hidden (in sample)";
  std::vector<ParameterRef> out;
  const auto add = [&out](const char* name, double& value, const char* unit, const char* source, ParameterKind kind, double log_sigma) {
    out.push_back({{name, value, unit, source, kind, log_sigma}, &value});
  };
  using enum ParameterKind;
  add("step.kernel_in_step", c.kernel_in_step, "", "fit of all open constants on published steps, every source once (chokepoint validate --fit); standard error 3.5 %", kFitted, 0.06);
  add("step.kernel_in_step_fused", c.kernel_in_step_fused, "", "the same on steps of Megatron-Core with Transformer Engine (in sample)", kFitted, 0.06);
  add("step.machine_pace", c.machine_pace, "", "published sources spread by 10 to 15 % around the model", kMachine, 0.1);
  add("step.python_forward", c.python_forward_s, "s/layer", kFloor, kFitted, 0.25);
  add("step.python_backward", c.python_backward_s, "s/layer", kFloor, kFitted, 0.25);
  add("step.python_compiled_share", c.python_compiled_share, "", "estimate, not measured", kEstimate, 0.5);
  add("step.sequence_parallel_host", c.sequence_parallel_host_s, "s/pass", "host floor of tensor-parallel steps at micro-batch 1 (Ultra-Scale sweep)", kFitted, 0.3);
  add("step.tensor_host", c.tensor_host_s, "s/pass", kFloor, kFitted, 0.5);
  add("step.sharded_unit_host", c.sharded_unit_host_s, "s/pass", "estimate, not measured", kEstimate, 0.5);
  add("step.routing_kernels", c.routing_kernels, "", "estimate from the steps of Megatron-Core's router and dispatcher, not counted in a trace", kEstimate, 0);
  add("step.moe_host_factor", c.moe_host_factor, "", "estimate, not measured", kEstimate, 0.3);
  add("step.fixed", c.step_fixed_s, "s/step", "the same fit; known to a factor of two", kFitted, 0.7);
  add("step.slice_copy", c.slice_copy_s, "s", "ZeRO-1 steps that copy a slice of each tensor for each of 16 to 512 ranks (in sample)", kFitted, 0.2);
  add("step.communication_units", c.communication_units, "SMs", "NCCL channel counts 16-32", kPublished, 0.25);
  add("step.async_tensor_exposed", c.async_tensor_exposed, "", "torchtitan, vanilla against asynchronous tensor parallelism: 0.37-0.47 of it saved (in sample)", kFitted, 0.2);
  add("step.fetch", c.fetch_s_per_byte, "s/B", kFetch, kFitted, 0.3);
  add("step.fetch_overlap_share", c.fetch_overlap_share, "", kFetch, kFitted, 0.3);
  add("step.host_adam_share", c.host_adam_share, "", "CPU-Adam, 10 B parameters in 2.57 s (ZeRO-Offload, arXiv 2101.06840, table 4)", kPublished, 0.2);
  add("step.pinned_copy_share", c.pinned_copy_share, "", "healthy copies reach 0.80-0.88 of the wire (stas00/ml-engineering, network)", kPublished, 0.05);
  // Bands widen or narrow a prediction; a step time says nothing about them, so nothing moves them along with the rest.
  add("step.band_compute", c.band_compute, "", kBand, kFitted, 0);
  add("step.band_host", c.band_host, "", kBand, kFitted, 0);
  add("step.band_bubble", c.band_bubble, "", kBand, kFitted, 0);
  add("step.band_wires_measured", c.band_wires_measured, "", kBand, kFitted, 0);
  add("step.band_wires", c.band_wires, "", kBand, kFitted, 0);
  add("step.band_generation", c.band_generation, "", "left-out errors of Volta against Ampere (80 %: 0.31 and 0.20), shrunk", kFitted, 0);
  add("step.band_framework", c.band_framework, "", "estimate, not measured", kEstimate, 0);
  add("step.band_source", c.band_source, "", kBand, kFitted, 0);
  return out;
}

std::vector<ParameterRef> refs(Parameters& p) {
  std::vector<ParameterRef> all = compute::refs(p.compute);
  for (ParameterRef& ref : collective::refs(p.collective)) all.push_back(std::move(ref));
  for (ParameterRef& ref : refs(p.step)) all.push_back(std::move(ref));
  return all;
}

std::vector<Parameter> parameters() {
  Constants defaults;
  std::vector<Parameter> out;
  for (ParameterRef& ref : refs(defaults)) out.push_back(std::move(ref.info));
  return out;
}

}  // namespace chokepoint::simulate
