// SPDX-License-Identifier: Apache-2.0
#include "messages.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <queue>

namespace chokepoint::simulate {

using topology::MeasuredNetwork;

namespace {

/// Threads that run collectives: two for each device (ProcessGroupGloo::createDefaultDevice gives one device).
constexpr int kWorkers = 2;

/// A thread of a rank: what it runs and where it stands.
struct Thread {
  int rank = 0;
  const Program* program = nullptr;
  std::size_t at = 0;
  int job = -1;          ///< a worker's; -1: the main thread, or an idle worker
};

struct MessageState {
  int posted = 0;        ///< sides that called
  double ready_s = 0;    ///< when the sender knows that the receiver waits
  bool arrived = false;
  std::vector<int> waiting;  ///< threads
};

/// Messages of one rank to another.
struct Connection {
  std::deque<int> waiting;
  bool busy = false;
  flow::FlowId flow = 0;
};

/// What the kernel takes of a message at once: the largest send buffer of Linux (net.ipv4.tcp_wmem, 4 MiB).
constexpr double kSocketBytes = 4.0 * 1024 * 1024;
/// A frame of 66 bytes acknowledges two full segments, 1514 bytes each, on the way back (RFC 1122, 4.2.3.2).
constexpr double kAckShare = 66.0 / (2 * 1514);

struct Timer {
  double at_s = 0;
  std::uint64_t order = 0;
  int thread = -1;       ///< to go on
  int message = -1;      ///< to start
  bool operator>(const Timer& other) const { return at_s != other.at_s ? at_s > other.at_s : order > other.order; }
};

class Run {
 public:
  Run(const Machine& machine, const MeasuredLinks& links, const MeasuredNetwork& network)
      : machine_(machine), links_(links), network_(network), fluid_(links.capacities()), messages_(machine.messages.size()),
        queues_(machine.main.size()), done_(machine.main.size(), std::vector<bool>(machine.jobs.size(), false)),
        finishers_(machine.main.size(), -1) {
    for (std::size_t rank = 0; rank < machine.main.size(); ++rank) {
      threads_.push_back({static_cast<int>(rank), &machine.main[rank], 0, -1});
      for (int w = 0; w < kWorkers; ++w) threads_.push_back({static_cast<int>(rank), nullptr, 0, -1});
    }
  }

  RunResult go() {
    for (std::size_t t = 0; t < threads_.size(); t += 1 + kWorkers) advance(static_cast<int>(t));
    std::vector<flow::FlowId> ended;
    std::vector<int> arrived;
    for (;;) {
      const double timer_s = timers_.empty() ? flow::kNever : timers_.top().at_s;
      const double next_s = std::min(timer_s, fluid_.next_s());
      if (next_s == flow::kNever) break;
      fluid_.advance(next_s, ended);
      // First all names: what arrives lets new flows start, which take the ended ones' numbers.
      arrived.clear();
      for (const flow::FlowId flow : ended) arrived.push_back(message_of_flow_[flow]);
      for (const int message : arrived) arrive(message);
      while (!timers_.empty() && timers_.top().at_s <= fluid_.now_s()) {
        const Timer timer = timers_.top();
        timers_.pop();
        if (timer.message >= 0) start_flow(timer.message);
        else advance(timer.thread);
      }
    }
    return result();
  }

 private:
  void set_timer(double at_s, int thread, int message) { timers_.push({at_s, ++order_, thread, message}); }

  /// Runs a thread until it has to wait.
  void advance(int index) {
    for (;;) {
      Thread& thread = threads_[static_cast<std::size_t>(index)];
      if (thread.program == nullptr) return;
      if (thread.at == thread.program->size()) {
        if (thread.job < 0) {
          end_s_ = std::max(end_s_, fluid_.now_s());
          thread.program = nullptr;
          return;
        }
        finish_job(thread);
        if (!take_job(thread)) return;
        continue;
      }
      const Instruction& next = (*thread.program)[thread.at];
      if (!execute(index, thread, next)) return;
    }
  }

  /// Whether the thread may go on at once; if not, someone will call advance() again.
  bool execute(int index, Thread& thread, const Instruction& next) {
    switch (next.what) {
      case Do::kCompute:
        ++thread.at;
        if (next.seconds <= 0) return true;
        set_timer(fluid_.now_s() + next.seconds, index, -1);
        return false;
      case Do::kStart:
        ++thread.at;
        queues_[static_cast<std::size_t>(thread.rank)].push_back(next.index);
        wake_worker(thread.rank);
        return true;
      case Do::kFinish:
        if (!done_[static_cast<std::size_t>(thread.rank)][static_cast<std::size_t>(next.index)]) {
          finishers_[static_cast<std::size_t>(thread.rank)] = next.index;
          return false;
        }
        ++thread.at;
        return true;
      case Do::kPost:
        ++thread.at;
        post(next.index, thread.rank);
        return true;
      case Do::kWait:
        if (!messages_[static_cast<std::size_t>(next.index)].arrived) {
          messages_[static_cast<std::size_t>(next.index)].waiting.push_back(index);
          return false;
        }
        ++thread.at;
        return true;
    }
    return false;
  }

  /// Data goes once both sides have called and the sender has heard of it: the receiver's word travels the other way, and
  /// waits there behind data that stands in the same queues.
  void post(int index, int rank) {
    MessageState& message = messages_[static_cast<std::size_t>(index)];
    const collective::GlooMessage& it = machine_.messages[static_cast<std::size_t>(index)];
    if (rank == it.to) message.ready_s = fluid_.now_s() + word_s(it.to, it.from);
    if (++message.posted < 2) return;
    if (message.ready_s <= fluid_.now_s()) start_flow(index);
    else set_timer(message.ready_s, -1, index);
  }

  /// Time of a few bytes: the latency, and what is queued before them. Each message under way stands, as far as the
  /// sender's kernel takes it, before the narrowest link of its way.
  double word_s(int from, int to) const {
    double time_s = network_.hosts[static_cast<std::size_t>(from)].latency_s.median;
    const std::vector<flow::Use> way = links_.way(from, to);
    for (const auto& [hosts, connection] : connections_) {
      if (!connection.busy) continue;
      const std::uint32_t narrow = links_.narrowest(hosts.first, hosts.second);
      const bool shared = std::any_of(way.begin(), way.end(), [narrow](const flow::Use& use) { return use.link == narrow; });
      double queued = fluid_.left_bytes(connection.flow);
      for (const int next : connection.waiting) queued += machine_.messages[static_cast<std::size_t>(next)].bytes;
      if (shared) time_s += std::min(queued, kSocketBytes) / links_.capacities()[narrow];
    }
    return time_s;
  }

  /// One TCP connection for each pair and direction: messages follow one another.
  void start_flow(int index) {
    const collective::GlooMessage& it = machine_.messages[static_cast<std::size_t>(index)];
    Connection& connection = connections_[{it.from, it.to}];
    connection.waiting.push_back(index);
    if (!connection.busy) send_next(connection);
  }
  void send_next(Connection& connection) {
    connection.busy = !connection.waiting.empty();
    if (!connection.busy) return;
    const int index = connection.waiting.front();
    connection.waiting.pop_front();
    const collective::GlooMessage& it = machine_.messages[static_cast<std::size_t>(index)];
    std::vector<flow::Use> way = links_.way(it.from, it.to);
    for (flow::Use use : links_.way(it.to, it.from)) {
      use.weight = kAckShare;
      way.push_back(use);
    }
    connection.flow = fluid_.start(way, it.bytes);
    if (message_of_flow_.size() <= connection.flow) message_of_flow_.resize(connection.flow + 1);
    message_of_flow_[connection.flow] = index;
  }

  void arrive(int index) {
    MessageState& message = messages_[static_cast<std::size_t>(index)];
    message.arrived = true;
    const collective::GlooMessage& it = machine_.messages[static_cast<std::size_t>(index)];
    send_next(connections_[{it.from, it.to}]);
    std::vector<int> waiting;
    waiting.swap(message.waiting);
    for (const int thread : waiting) advance(thread);
  }

  void wake_worker(int rank) {
    for (int w = 0; w < kWorkers; ++w) {
      const int index = rank * (1 + kWorkers) + 1 + w;
      Thread& worker = threads_[static_cast<std::size_t>(index)];
      if (worker.program != nullptr) continue;
      if (take_job(worker)) advance(index);
      return;
    }
  }

  bool take_job(Thread& worker) {
    std::deque<int>& queue = queues_[static_cast<std::size_t>(worker.rank)];
    worker.program = nullptr;
    worker.job = -1;
    if (queue.empty()) return false;
    worker.job = queue.front();
    queue.pop_front();
    worker.program = &machine_.jobs[static_cast<std::size_t>(worker.job)].of_rank[static_cast<std::size_t>(worker.rank)];
    worker.at = 0;
    return true;
  }

  void finish_job(const Thread& worker) {
    const auto rank = static_cast<std::size_t>(worker.rank);
    done_[rank][static_cast<std::size_t>(worker.job)] = true;
    if (finishers_[rank] != worker.job) return;
    finishers_[rank] = -1;
    set_timer(fluid_.now_s(), worker.rank * (1 + kWorkers), -1);
  }

  RunResult result() const {
    RunResult result;
    result.end_s = end_s_;
    for (std::size_t t = 0; t < threads_.size(); t += 1 + kWorkers) result.stuck = result.stuck || threads_[t].program != nullptr;
    for (std::uint32_t link = 0; link < fluid_.links(); ++link) result.carried_bytes.push_back(fluid_.carried_bytes(link));
    return result;
  }

  const Machine& machine_;
  const MeasuredLinks& links_;
  const MeasuredNetwork& network_;
  flow::Fluid fluid_;
  std::vector<Thread> threads_;
  std::vector<MessageState> messages_;
  std::vector<std::deque<int>> queues_;       ///< by rank: collectives that wait for a worker
  std::vector<std::vector<bool>> done_;       ///< by rank and collective
  std::vector<int> finishers_;                ///< by rank: the collective its main thread waits for
  std::vector<int> message_of_flow_;
  std::map<std::pair<int, int>, Connection> connections_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::uint64_t order_ = 0;
  double end_s_ = 0;
};

std::string short_names(const MeasuredNetwork& network, const std::vector<int>& hosts) {
  std::string text;
  for (const int host : hosts) text += (text.empty() ? "" : ", ") + network.hosts[static_cast<std::size_t>(host)].name;
  return text;
}

double or_never(double bytes_per_s) { return bytes_per_s > 0 ? bytes_per_s : flow::kNever; }

}  // namespace

MeasuredLinks::MeasuredLinks(const MeasuredNetwork& network) : network_(network) {
  for (const topology::MeasuredHost& host : network.hosts) {
    capacities_.push_back(or_never(host.out_bytes_per_s.median));
    capacities_.push_back(or_never(host.in_bytes_per_s.median));
  }
  for (const topology::MeasuredGroup& group : network.groups) {
    capacities_.push_back(or_never(group.out_bytes_per_s));
    capacities_.push_back(or_never(group.in_bytes_per_s));
  }
}

std::vector<flow::Use> MeasuredLinks::way(int from, int to) const {
  std::vector<flow::Use> uses{{2 * static_cast<std::uint32_t>(from), 1}, {2 * static_cast<std::uint32_t>(to) + 1, 1}};
  const int a = network_.group_of(from);
  const int b = network_.group_of(to);
  const auto first = 2 * static_cast<std::uint32_t>(network_.hosts.size());
  if (a >= 0 && a != b) uses.push_back({first + 2 * static_cast<std::uint32_t>(a), 1});
  if (b >= 0 && a != b) uses.push_back({first + 2 * static_cast<std::uint32_t>(b) + 1, 1});
  return uses;
}

std::uint32_t MeasuredLinks::narrowest(int from, int to) const {
  const std::vector<flow::Use> uses = way(from, to);
  return std::min_element(uses.begin(), uses.end(), [this](const flow::Use& a, const flow::Use& b) { return capacities_[a.link] < capacities_[b.link]; })->link;
}

std::string MeasuredLinks::name(std::size_t link) const {
  const std::size_t hosts = network_.hosts.size();
  if (link < 2 * hosts) return network_.hosts[link / 2].name + (link % 2 == 0 ? " out" : " in");
  const std::string group = short_names(network_, network_.groups[(link - 2 * hosts) / 2].hosts);
  return link % 2 == 0 ? group + " to the others" : "the others to " + group;
}

int Machine::add_message(int from, int to, double bytes) {
  messages.push_back({from, to, bytes});
  return static_cast<int>(messages.size()) - 1;
}

int Machine::add_job(const collective::GlooSchedule& schedule, const std::vector<int>& ranks) {
  const int first = static_cast<int>(messages.size());
  messages.insert(messages.end(), schedule.messages.begin(), schedule.messages.end());
  Job job;
  job.of_rank.resize(main.size());
  for (std::size_t p = 0; p < schedule.actions.size(); ++p) {
    Program& program = job.of_rank[static_cast<std::size_t>(ranks[p])];
    for (const collective::GlooAction& action : schedule.actions[p]) {
      program.push_back({action.step == collective::GlooStep::kPost ? Do::kPost : Do::kWait, first + action.message, 0});
    }
  }
  jobs.push_back(std::move(job));
  return static_cast<int>(jobs.size()) - 1;
}

RunResult run(const Machine& machine, const MeasuredLinks& links, const MeasuredNetwork& network) { return Run(machine, links, network).go(); }

}  // namespace chokepoint::simulate
