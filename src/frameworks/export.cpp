// SPDX-License-Identifier: Apache-2.0
#include "express.hpp"

#include <chokepoint/frameworks/frameworks.hpp>

#include <fmt/format.h>

namespace chokepoint::frameworks {

namespace {

/// What the frameworks' own words for a model cannot say, found by reading the files back.
void compare_model(const parallel::Job& job, const Export& written, std::vector<std::string>& notices) {
  const Open none = [](const std::string& path) -> Result<std::string> { return fail("no such file: " + path); };
  const auto reading = read(written.files.front().text, written.files.front().name, none);
  if (!reading || !reading->model) return;
  const double asked = model::count_parameters(job.model).total, said = model::count_parameters(*reading->model).total;
  if (asked != said) {
    notices.push_back(
        fmt::format("Megatron's arguments describe {:.4g} B parameters, the model has {:.4g} B: what {} has beside the "
                    "usual layers is yours to add",
                    said / 1e9, asked / 1e9, job.model.name));
  }
}

}  // namespace

Result<Export> export_settings(const parallel::Job& job, const parallel::Strategy& strategy, Target target) {
  if (target == Target::kHostfile) return Export{{{"hostfile", hostfile(job)}}, {}, strategy};
  if (target == Target::kRankmap) return Export{{{"rankmap.csv", rank_map(job, strategy)}}, {}, strategy};
  Expressing e(job, strategy);
  const Machines machines = machines_of(job);
  if (machines.hosts * machines.per_host != job.gpus) {
    e.note(fmt::format("{} GPUs do not fill hosts of {}: the launch line starts {} processes", job.gpus,
                       machines.per_host, machines.hosts * machines.per_host));
  }
  if (target == Target::kMegatron || target == Target::kNemo) {
    TRY_INTO([[maybe_unused]] const bool ok, express_megatron(e));
    Export out = std::move(e).done({});
    const Expressing written(job, out.expressed);
    out.files = target == Target::kMegatron ? write_megatron(written) : write_nemo(written);
    compare_model(job, out, out.notices);
    return out;
  }
  std::vector<File> files;
  if (target == Target::kTorchtitan) {
    TRY_INTO([[maybe_unused]] const bool ok, express_torchtitan(e));
    files = write_torchtitan(e);
  } else if (target == Target::kDeepspeed) {
    TRY_INTO([[maybe_unused]] const bool ok, express_deepspeed(e));
    files = write_deepspeed(e);
  } else {
    TRY_INTO([[maybe_unused]] const bool ok, express_accelerate(e));
    files = write_accelerate(e);
  }
  return std::move(e).done(std::move(files));
}

}  // namespace chokepoint::frameworks
