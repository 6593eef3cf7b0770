// SPDX-License-Identifier: Apache-2.0
#include "job_changes.hpp"

#include <chokepoint/whatif/change.hpp>
#include <utility>

namespace chokepoint::commands {

void add_change_option(CLI::App& command, std::vector<std::string>& changes) {
  command.add_option("--change", changes, "predict the changed job, for example \"network=x2\" (docs/formats/whatif.md); may be repeated")->allow_extra_args(false);
}

Result<bool> apply_changes(const std::vector<std::string>& changes, job::JobFile& file, simulate::Parameters& parameters) {
  if (changes.empty()) return true;
  std::vector<whatif::Change> parsed;
  for (const std::string& text : changes) {
    TRY_INTO(whatif::Change change, whatif::parse_change(text));
    if (change.key == "clock") return fail("'" + text + "' is a change of whatif alone, which keeps the data sheet's peak for MFU", {}, {"chokepoint whatif JOB --change " + text});
    parsed.push_back(std::move(change));
  }
  whatif::Scenario scenario;
  scenario.job = file.job;
  if (file.strategy) scenario.strategy = whatif::portable(*file.strategy);
  scenario.parameters = parameters;
  TRY_INTO(whatif::Scenario after, whatif::changed(scenario, parsed));
  file.job = std::move(after.job);
  file.strategy = after.strategy;
  parameters = after.parameters;
  file.job.assumptions.insert(file.job.assumptions.end(), after.notes.begin(), after.notes.end());
  return true;
}

}  // namespace chokepoint::commands
