// SPDX-License-Identifier: Apache-2.0
#pragma once
// "What if": a change in words, and the job it turns a job into.
//
//   TRY_INTO(const Change faster, parse_change("nic=400 Gb/s"));
//   TRY_INTO(const Scenario after, changed(before, {faster}));
//
// A change touches the job's own wiring, accelerator, software or strategy; whatever predicts a job then predicts the
// changed one. docs/formats/whatif.md lists the words.
#include <chokepoint/parallel/job.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <chokepoint/whatif/real_step.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::whatif {

/// A job with everything that a change may move. The strategy's data degree and accumulation are left to be derived, so
/// that it still means something on more accelerators or another batch.
struct Scenario {
  parallel::Job job;
  std::optional<parallel::Strategy> strategy;
  simulate::Parameters parameters;
  double arithmetic = 1;    ///< rate of arithmetic against the data sheet (clock=x0.9)
  RealJob real;             ///< how the job differs from the model, in which ranks are alike
  std::vector<Note> notes;  ///< what a change brought along
};

/// The strategy without what the job's size decides.
parallel::Strategy portable(parallel::Strategy strategy);

/// One change, its words known and its value not yet held against a job.
struct Change {
  std::string text;  ///< as given
  std::string key;   ///< canonical: "nic", "zero", "gpu5.pcie"
  std::string value;
};
/// "nic=400 Gb/s", "nvlink=x2", "hsdp". Unknown words are errors with the nearest known one.
Result<Change> parse_change(std::string_view text);

/// All changes together; the order they are given in does not matter. Errors: two values for one thing, devices that
/// the wiring does not have, values out of range.
Result<Scenario> changed(const Scenario& base, const std::vector<Change>& changes);

/// One word of the language, for help and documentation.
struct ChangeWord {
  std::string_view key;
  std::string_view example;
  std::string_view meaning;
};
const std::vector<ChangeWord>& change_words();

}  // namespace chokepoint::whatif
