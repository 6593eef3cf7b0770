// SPDX-License-Identifier: Apache-2.0
// Variables in a launch script that change what NCCL and CUDA do.
#include "interpret.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace chokepoint::frameworks {

namespace {

constexpr std::array kPrefixes = {"NCCL_", "CUDA_", "TORCH_", "PYTORCH_", "OMP_", "NVTE_",
                                  "FI_",   "GLOO_", "UCX_",   "RCCL_",    "HIP_", "HSA_"};

constexpr std::array kQuiet = {
    Known{"NCCL_DEBUG*", ""},
    Known{"NCCL_ASYNC_ERROR_HANDLING", ""},
    Known{"NCCL_TIMEOUT", ""},
    Known{"TORCH_NCCL_*", ""},
    Known{"TORCH_DISTRIBUTED_DEBUG", ""},
    Known{"TORCH_SHOW_CPP_STACKTRACES", ""},
    Known{"TORCH_CPP_LOG_LEVEL", ""},
    Known{"TORCH_EXTENSIONS_DIR", ""},
    Known{"TORCH_LOGS", ""},
    Known{"CUDA_HOME", ""},
    Known{"CUDA_PATH", ""},
    Known{"CUDA_DEVICE_ORDER", ""},
    Known{"NCCL_TOPO_DUMP_FILE", ""},
    Known{"NCCL_GRAPH_DUMP_FILE", ""},
    Known{"GLOO_SOCKET_IFNAME", ""},
    Known{"NVTE_FWD_LAYERNORM_SM_MARGIN", ""},
    Known{"NVTE_BWD_LAYERNORM_SM_MARGIN", ""},
    Known{"NVTE_DEBUG*", ""},
    Known{"OMP_NUM_THREADS", ""},
    Known{"NCCL_IB_TIMEOUT", ""},
    Known{"NCCL_IB_RETRY_CNT", ""},
    Known{"CUDA_CACHE*", ""},
    Known{"TORCH_HOME", ""},
    Known{"CUDA_VISIBLE_DEVICES", "--gpus says how many"},
};
constexpr std::array kOpen = {
    Known{"PYTORCH_CUDA_ALLOC_CONF", "the framework's usual allocator settings are taken"},
    Known{"NCCL_SOCKET_IFNAME", "the cluster file says which network carries the traffic"},
    Known{"NCCL_IB_HCA", "the cluster file says which NICs carry the traffic"},
    Known{"NCCL_ALGO", "NCCL's own choice is taken"},
    Known{"NCCL_PROTO", "NCCL's own choice is taken"},
    Known{"NCCL_*", "NCCL's default is taken"},
    Known{"NVTE_*", "Transformer Engine's default is taken"},
    Known{"FI_*", "the cluster file says which network carries the traffic"},
    Known{"UCX_*", ""},
    Known{"RCCL_*", ""},
    Known{"HIP_*", ""},
    Known{"HSA_*", ""},
    Known{"CUDA_*", ""},
    Known{"TORCH_*", ""},
    Known{"PYTORCH_*", ""},
    Known{"OMP_*", ""},
    Known{"GLOO_*", ""},
};

struct Harmful {
  std::string_view name;
  std::string_view id;
  std::string_view what;
  std::string_view fix;
};
/// Set to 1, each of these was the answer to a public question about a slow job.
constexpr std::array kHarmful = {
    Harmful{"NCCL_P2P_DISABLE", "nccl_p2p_disabled",
            "NCCL_P2P_DISABLE=1 sends traffic between the GPUs of a host through its memory",
            "drop it; NCCL finds out by itself whether peers can reach each other"},
    Harmful{"NCCL_IB_DISABLE", "nccl_ib_disabled", "NCCL_IB_DISABLE=1 sends traffic between hosts through TCP sockets",
            "drop it where the hosts have InfiniBand or RoCE"},
    Harmful{"NCCL_SHM_DISABLE", "nccl_shm_disabled",
            "NCCL_SHM_DISABLE=1 sends traffic inside a host through the network where peers cannot reach each other",
            "drop it"},
    Harmful{"CUDA_LAUNCH_BLOCKING", "cuda_launch_blocking",
            "CUDA_LAUNCH_BLOCKING=1 makes the host wait for every kernel: nothing overlaps",
            "drop it outside debugging"},
};

}  // namespace

void note_environment(const Script& script, Reading& out) {
  std::vector<Setting> list;
  for (const Assignment& variable : script.variables) {
    const bool ours = std::any_of(kPrefixes.begin(), kPrefixes.end(),
                                  [&](const char* prefix) { return variable.name.starts_with(prefix); });
    if (ours) list.push_back({variable.name, variable.value, variable.pos, Use::kUnknown, ""});
  }
  Settings settings(std::move(list));
  for (const Harmful& harmful : kHarmful) {
    const auto value = settings.text(harmful.name);
    if (value != "1") continue;
    settings.mark(harmful.name, Use::kNotModelled, "the prediction is for a job without it");
    find(out, std::string(harmful.id), false, settings.pos(harmful.name), std::string(harmful.what),
         std::string(harmful.fix));
  }
  settings.text("CUDA_DEVICE_MAX_CONNECTIONS");
  settings.classify(kQuiet, kOpen);
  append(out.settings, settings);
}

void check_environment(Reading& out) {
  if (out.format != Format::kScript || out.software != parallel::Framework::kMegatron) return;
  const auto found = std::find_if(out.settings.rbegin(), out.settings.rend(),
                                  [](const Setting& s) { return s.key == "CUDA_DEVICE_MAX_CONNECTIONS"; });
  const bool set = found != out.settings.rend();
  const std::string value = set ? found->value : "";
  const SourcePos pos = set ? found->pos : out.strategy_pos;
  const parallel::Strategy& t = out.strategy;
  if (t.zero >= 2) {
    if (value == "1") {
      find(out, "one_connection_with_fsdp", false, pos,
           "CUDA_DEVICE_MAX_CONNECTIONS=1 queues FSDP's gathers behind the kernels they should hide under", "unset it");
    }
    return;
  }
  if (t.tensor > 1 && value != "1") {
    const std::string state =
        set ? fmt::format("CUDA_DEVICE_MAX_CONNECTIONS is {}", value) : "CUDA_DEVICE_MAX_CONNECTIONS is not set";
    find(out, "tensor_overlap_needs_one_connection", false, pos,
         state +
             ": on GPUs before Blackwell the backward's tensor-parallel collectives need not start before the products "
             "that should hide them",
         "export CUDA_DEVICE_MAX_CONNECTIONS=1");
  }
}

}  // namespace chokepoint::frameworks
