// SPDX-License-Identifier: Apache-2.0
#pragma once
// What of a strategy each framework can say. Private to the module.
#include <chokepoint/frameworks/export.hpp>
#include <string>
#include <utility>
#include <vector>

namespace chokepoint::frameworks {

/// A strategy on its way into a framework's words: each change of it leaves a notice.
class Expressing {
 public:
  Expressing(const parallel::Job& job, parallel::Strategy strategy) : job_(job), strategy_(std::move(strategy)) {}

  const parallel::Job& job() const { return job_; }
  const parallel::Strategy& strategy() const { return strategy_; }

  /// Sets a field; a notice where that changes it.
  template <class T>
  void take(T parallel::Strategy::*field, T value, std::string notice) {
    if (strategy_.*field == value) return;
    strategy_.*field = std::move(value);
    notices_.push_back(std::move(notice));
  }
  /// Sets a field that has no meaning here.
  template <class T>
  void plain(T parallel::Strategy::*field, T value) {
    strategy_.*field = std::move(value);
  }
  void note(std::string notice) { notices_.push_back(std::move(notice)); }

  Export done(std::vector<File> files) && { return {std::move(files), std::move(notices_), std::move(strategy_)}; }

 private:
  const parallel::Job& job_;
  parallel::Strategy strategy_;
  std::vector<std::string> notices_;
};

/// Hosts and processes of the job.
struct Machines {
  int hosts = 1;
  int per_host = 1;
};
Machines machines_of(const parallel::Job& job);

Result<bool> express_megatron(Expressing& e);
Result<bool> express_torchtitan(Expressing& e);
Result<bool> express_deepspeed(Expressing& e);
Result<bool> express_accelerate(Expressing& e);

std::vector<File> write_megatron(const Expressing& e);
std::vector<File> write_nemo(const Expressing& e);
std::vector<File> write_torchtitan(Expressing& e);
std::vector<File> write_deepspeed(const Expressing& e);
std::vector<File> write_accelerate(const Expressing& e);

/// Decoder layers of each chunk in the order of the model, where they are not all equal.
std::vector<int> chunk_layers(const parallel::Job& job, const parallel::Strategy& strategy);

/// export lines for a launch script, each with its reason.
std::string environment_lines(const parallel::Job& job, const parallel::Strategy& strategy, Target target);

}  // namespace chokepoint::frameworks
