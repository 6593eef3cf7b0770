// SPDX-License-Identifier: Apache-2.0
#include "tasks.hpp"

#include <charconv>
#include <chokepoint/base/units.hpp>
#include <chokepoint/service/answer.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

namespace chokepoint::service {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kLongestQueue = 32;
constexpr std::size_t kMostKept = 64;                          ///< ended tasks
constexpr std::size_t kMostKept_bytes = std::size_t{256} << 20;  ///< of their results

std::string_view name(Task::State state) {
  switch (state) {
    case Task::State::kQueued: return "queued";
    case Task::State::kRunning: return "running";
    case Task::State::kDone: return "done";
    case Task::State::kFailed: return "failed";
    case Task::State::kCancelled: break;
  }
  return "cancelled";
}

bool over(const Task& task) { return task.state != Task::State::kQueued && task.state != Task::State::kRunning; }

}  // namespace

Error failure_of(Ended::How how, double timeout_s) {
  if (how == Ended::How::kTimedOut) {
    return {"took longer than " + format_duration(timeout_s) + " and was stopped", {}, {"ask for less, or send it with \"async\": true", "chokepoint serve --timeout and --task-timeout set the limits"}};
  }
  if (how == Ended::How::kCancelled) return {"was cancelled", {}, {}};
  return {"its process ended: out of memory, or an internal error", {}, {"ask for less: a smaller job, fewer files", "chokepoint serve --max-memory sets the limit"}};
}

std::string new_instance() {
  std::random_device random;
  char text[16];
  std::snprintf(text, sizeof text, "%08x", random());
  return text;
}

Tasks::Tasks(boost::asio::io_context& io, Spawn spawn, std::size_t processes, double timeout_s, std::string instance)
    : pool_(io, std::move(spawn), processes, kLongestQueue), timeout_s_(timeout_s), instance_(std::move(instance)) {}

std::optional<std::string> Tasks::start(const std::string& operation, std::string body) {
  forget_old();
  auto task = std::make_shared<Task>();
  task->operation = operation;
  task->begun = Clock::now();
  task->id = instance_ + "-" + std::to_string(next_);
  PoolJob job{operation, std::move(body), timeout_s_, {}, {}, {}};
  job.progress = [task](double share) { task->share = share; };
  job.started = [task] {
    task->state = Task::State::kRunning;
    task->begun = Clock::now();
  };
  job.done = [this, task](Ended result) { ended(task, std::move(result)); };
  task->ticket = pool_.submit(std::move(job));
  if (task->ticket == 0) return std::nullopt;
  tasks_[next_++] = task;
  return task->id;
}

void Tasks::ended(const std::shared_ptr<Task>& task, Ended result) {
  task->ended = Clock::now();
  task->ticket = 0;
  if (result.how == Ended::How::kCancelled) task->state = Task::State::kCancelled;
  else if (result.how == Ended::How::kAnswered && result.code != 2 && result.code != 3) task->state = Task::State::kDone;
  else task->state = Task::State::kFailed;
  task->result = std::move(result);
  forget_old();
}

/// The oldest ended ones go first.
void Tasks::forget_old() {
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (auto at = tasks_.rbegin(); at != tasks_.rend();) {
    count += over(*at->second) ? 1 : 0;
    bytes += at->second->result.json.size();
    const bool newest = at == tasks_.rbegin();
    if (over(*at->second) && !newest && (count > kMostKept || bytes > kMostKept_bytes)) {
      at = std::make_reverse_iterator(tasks_.erase(std::next(at).base()));
    } else {
      ++at;
    }
  }
}

std::shared_ptr<Task> Tasks::find(const std::string& id) const {
  const std::string prefix = instance_ + "-";
  if (id.compare(0, prefix.size(), prefix) != 0) return nullptr;
  std::uint64_t number = 0;
  const char* end = id.data() + id.size();
  const auto read = std::from_chars(id.data() + prefix.size(), end, number);
  const auto at = read.ec == std::errc() && read.ptr == end ? tasks_.find(number) : tasks_.end();
  return at == tasks_.end() ? nullptr : at->second;
}

bool Tasks::remove(const std::string& id) {
  const std::shared_ptr<Task> task = find(id);
  if (!task) return false;
  if (!over(*task)) {
    pool_.cancel(task->ticket);
    return true;
  }
  for (auto at = tasks_.begin(); at != tasks_.end(); ++at) {
    if (at->second != task) continue;
    tasks_.erase(at);
    break;
  }
  return true;
}

std::optional<std::string> Tasks::json(const std::string& id) const {
  const std::shared_ptr<Task> task = find(id);
  if (!task) return std::nullopt;
  const Clock::time_point until = over(*task) ? task->ended : Clock::now();
  Json head{{"task", task->id}, {"operation", task->operation}, {"state", name(task->state)}, {"progress", nullptr}};
  if (task->state == Task::State::kDone) head["progress"] = 1;
  else if (task->share) head["progress"] = *task->share;
  head["elapsed_s"] = std::chrono::duration<double>(until - task->begun).count();
  if (task->state == Task::State::kQueued) head["waiting"] = pool_.waiting();
  std::string text = head.dump();
  text.pop_back();  // the brace, which stands again after what follows
  const Ended& result = task->result;
  if (task->state == Task::State::kDone) text += ",\"code\":" + std::to_string(result.code) + ",\"result\":" + result.json;
  if (task->state == Task::State::kFailed) {
    const std::string document = result.how == Ended::How::kAnswered ? result.json : error_json(failure_of(result.how, timeout_s_));
    const std::size_t open = document.find('{');
    const std::size_t close = document.rfind('}');
    text += "," + document.substr(open + 1, close - open - 1);
  }
  return text + "}\n";
}

}  // namespace chokepoint::service
