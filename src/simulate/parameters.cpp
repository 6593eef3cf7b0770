// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/simulate/predict.hpp>

#include "constants.hpp"

namespace chokepoint::simulate {

std::vector<Parameter> parameters() {
  constexpr const char* kFloor = "host floor: step time at micro-batch 1 against layers x micro-batches of small models (vTrain, one host)";
  return {
      {"step.kernel_in_step", kKernelInStep, "", "median residual of published steps that are all compute, sources counted once"},
      {"step.kernel_in_step_fused", kKernelInStepFused, "", "the same on steps of Megatron-Core with Transformer Engine"},
      {"step.python_forward", kPythonForward_s, "s/layer", kFloor},
      {"step.python_backward", kPythonBackward_s, "s/layer", kFloor},
      {"step.python_compiled_share", kPythonCompiledShare, "", "CPU share of compiled regions in public Kineto traces"},
      {"step.sequence_parallel_host", kSequenceParallelHost_s, "s/pass", "host floor of tensor-parallel steps at micro-batch 1 (Ultra-Scale sweep)"},
      {"step.tensor_host", kTensorHost_s, "s/pass", kFloor},
      {"step.sharded_unit_host", kShardedUnitHost_s, "s/pass", "FSDP hooks in public Kineto traces"},
      {"step.fixed", kStepFixed_s, "s/step", "intercept of step time against accumulation"},
      {"step.communication_units", kCommunicationUnits, "SMs", "NCCL channel counts 16-32"},
      {"step.async_tensor_exposed", kAsyncTensorExposed, "", "torchtitan asynchronous tensor parallelism, vanilla against async"},
      {"step.host_memory", kHostMemory_bytes_per_s, "B/s", "STREAM of two-socket servers"},
      {"step.pinned_copy_share", kPinnedCopyShare, "", "bandwidthTest on PCIe 4.0 and 5.0: 0.78-0.88"},
  };
}

}  // namespace chokepoint::simulate
