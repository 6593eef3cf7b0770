// SPDX-License-Identifier: Apache-2.0
// Names of kernels that communicate. A kernel's name is only a hint (a launch may hold several operations), so metadata on
// the event goes before it; but many traces have nothing else.
#include <chokepoint/trace/trace.hpp>

#include <algorithm>
#include <array>
#include <cctype>

namespace chokepoint::trace {

namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Prefixes: NCCL and RCCL kernels of every generation, Gaudi and Ascend HCCL, MSCCL, oneCCL.
constexpr std::array<std::string_view, 8> kPrefixes = {"nccl", "rccl", "hccl", "mscclKernel", "mscclpp", "oneccl", "gloo:", "c10d::"};
/// Parts: vLLM/SGLang custom all-reduce, PyTorch symmetric memory, DeepEP and DeepSeek dispatch, NVSHMEM, Flux, TRT-LLM.
constexpr std::array<std::string_view, 9> kParts = {"ncclKernel", "ncclDevKernel", "ncclSymk", "cross_device_reduce", "multimem_",
                                                     "deep_ep::", "ep::internode::", "ep::intranode::", "nvshmem"};

struct OpWord {
  std::string_view word;
  std::string_view op;
};
constexpr std::array<OpWord, 16> kOps = {{{"AllReduce", "AllReduce"}, {"ReduceScatter", "ReduceScatter"}, {"AllGather", "AllGather"},
                                          {"Broadcast", "Broadcast"}, {"SendRecv", "SendRecv"}, {"AllToAll", "AllToAll"},
                                          {"cross_device_reduce", "AllReduce"}, {"all_reduce", "AllReduce"}, {"allreduce", "AllReduce"},
                                          {"reduce_scatter", "ReduceScatter"}, {"all_gather", "AllGather"}, {"allgather", "AllGather"},
                                          {"all_to_all", "AllToAll"}, {"broadcast", "Broadcast"}, {"dispatch", "AllToAll"}, {"combine", "AllToAll"}}};

}  // namespace

Work classify_kernel(std::string_view kernel) {
  for (const std::string_view prefix : kPrefixes) {
    if (kernel.substr(0, prefix.size()) == prefix) return Work::kCommunication;
  }
  // The parts stand in the qualified name, before the arguments: a long template argument list must not be searched.
  const std::string_view head = kernel.substr(0, 160);
  for (const std::string_view part : kParts) {
    if (contains(head, part)) return Work::kCommunication;
  }
  if (kernel.substr(0, 6) == "Memcpy" || kernel.substr(0, 4) == "Copy" || kernel.substr(0, 3) == "dma") {
    return kernel.substr(0, 4) == "Copy" && !contains(kernel, "To") ? Work::kCompute : Work::kCopy;
  }
  if (kernel.substr(0, 6) == "Memset" || kernel.substr(0, 10) == "FillBuffer") return Work::kSet;
  return Work::kCompute;
}

std::string_view collective_of_kernel(std::string_view kernel) {
  for (const OpWord& candidate : kOps) {
    if (contains(kernel.substr(0, 160), candidate.word)) return candidate.op;
  }
  return kernel.substr(0, 4) == "nccl" && contains(kernel, "_Reduce") ? "Reduce" : "";
}

}  // namespace chokepoint::trace
