// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/simulate/predict.hpp>

#include "constants.hpp"

namespace chokepoint::simulate {

std::vector<Parameter> parameters() {
  constexpr const char* kFloor = "host floor: step time at micro-batch 1 against layers x micro-batches of small models (vTrain, one host)";
  constexpr const char* kBand = "class error, set so that the 80 % band holds 70-80 % of published rows (in sample)";
  return {
      {"step.kernel_in_step", kKernelInStep, "", "set by hand so that published steps that are nearly all compute centre on zero (in sample)"},
      {"step.kernel_in_step_fused", kKernelInStepFused, "", "the same on steps of Megatron-Core with Transformer Engine (in sample)"},
      {"step.python_forward", kPythonForward_s, "s/layer", kFloor},
      {"step.python_backward", kPythonBackward_s, "s/layer", kFloor},
      {"step.python_compiled_share", kPythonCompiledShare, "", "estimate, not measured"},
      {"step.sequence_parallel_host", kSequenceParallelHost_s, "s/pass", "host floor of tensor-parallel steps at micro-batch 1 (Ultra-Scale sweep)"},
      {"step.tensor_host", kTensorHost_s, "s/pass", kFloor},
      {"step.sharded_unit_host", kShardedUnitHost_s, "s/pass", "estimate, not measured"},
      {"step.fixed", kStepFixed_s, "s/step", "estimate, not measured"},
      {"step.communication_units", kCommunicationUnits, "SMs", "NCCL channel counts 16-32"},
      {"step.async_tensor_exposed", kAsyncTensorExposed, "", "torchtitan, vanilla against asynchronous tensor parallelism: 0.37-0.47 of it saved (in sample)"},
      {"step.host_memory", kHostMemory_bytes_per_s, "B/s", "estimate for two-socket servers, not measured"},
      {"step.pinned_copy_share", kPinnedCopyShare, "", "healthy copies reach 0.80-0.88 of the wire (stas00/ml-engineering, network)"},
      {"step.moe_host_factor", kMoeHostFactor, "", "estimate, not measured"},
      {"step.band_compute", kBandCompute, "", kBand},
      {"step.band_host", kBandHost, "", kBand},
      {"step.band_bubble", kBandBubble, "", kBand},
      {"step.band_wires_measured", kBandWiresMeasured, "", kBand},
      {"step.band_wires", kBandWires, "", kBand},
      {"step.band_source", kBandSource, "", kBand},
  };
}

}  // namespace chokepoint::simulate
