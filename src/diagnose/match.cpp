// SPDX-License-Identifier: Apache-2.0
#include "match.hpp"

#include <algorithm>
#include <chokepoint/trace/trace.hpp>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace chokepoint::diagnose {

using collective::Op;
using simulate::Bill;
using trace::CollectiveInfo;
using trace::RankTrace;

namespace {

/// Operations of one communicator as one rank saw them.
struct Sequence {
  int member = 0;                   ///< position among the traces
  std::vector<std::size_t> events;  ///< device events, by start
};

std::string lower_letters(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if (c >= 'a' && c <= 'z') out += c;
  }
  return out;
}

std::optional<Op> op_of(std::string_view text) {
  const std::string word = lower_letters(text);
  const auto has = [&word](std::string_view part) { return word.find(part) != std::string::npos; };
  if (has("reducescatter")) return Op::kReduceScatter;
  if (has("allgather") || has("gatherinto")) return Op::kAllGather;
  if (has("allreduce") || has("barrier")) return Op::kAllReduce;
  if (has("alltoall")) return Op::kAllToAll;
  if (has("broadcast")) return Op::kBroadcast;
  if (has("sendrecv") || has("send") || has("recv")) return Op::kSendRecv;
  if (has("reduce")) return Op::kReduce;
  return std::nullopt;
}

std::optional<Op> op_of(const RankTrace& t, std::size_t event) {
  const std::int32_t c = t.device.collective[event];
  if (c >= 0) {
    if (const auto op = op_of(t.names[t.collectives[static_cast<std::size_t>(c)].op])) return op;
  }
  return op_of(trace::collective_of_kernel(t.names[t.device.name[event]]));
}

double dtype_bytes(std::string_view dtype) {
  const std::string word = lower_letters(dtype);
  if (word == "float" || word == "int") return 4;
  if (word == "double" || word == "long") return 8;
  if (word == "bfloat" || word == "half" || word == "short") return 2;
  if (word == "byte" || word == "char" || word == "bool" || word.find("float") == 0) return 1;  // Float8_...
  return 0;
}

/// nccl-tests' size: the gathered buffer, the buffer before a scatter, the message.
std::int64_t bytes_of(const RankTrace& t, const CollectiveInfo& info, Op op) {
  const std::string_view dtype = t.names[info.dtype];
  const double width = dtype == "BFloat16" ? 2 : dtype_bytes(dtype);
  const std::int64_t elements = op == Op::kAllGather ? std::max(info.in_elements, info.out_elements)
                                : op == Op::kReduceScatter ? std::max(info.in_elements, info.out_elements)
                                                           : info.in_elements;
  constexpr std::int64_t kMostElements = std::int64_t{1} << 50;
  if (width <= 0 || elements <= 0 || elements > kMostElements) return -1;
  return elements * static_cast<std::int64_t>(width);
}

/// Which parallel dimension a group serves, from its description, else from what it does.
Bill dimension_of(std::string_view description, Op op, int group_size) {
  const std::string word = lower_letters(description);
  const auto has = [&word](std::string_view part) { return word.find(part) != std::string::npos; };
  const Bill data = op == Op::kAllGather || op == Op::kBroadcast ? Bill::kDataGather : Bill::kDataReduce;
  if (has("expert") && !has("data")) return Bill::kExpert;
  if (has("tensor") || word == "tp" || word == "meshtp") return Bill::kTensor;
  if (has("pipeline") || word == "pp" || word == "meshpp") return Bill::kPipeline;
  if (has("context") && !has("data")) return Bill::kContext;
  if (word == "cp" || word == "meshcp") return Bill::kContext;
  if (op == Op::kAllToAll) return Bill::kExpert;
  if (op == Op::kSendRecv) return group_size > 2 ? Bill::kExpert : Bill::kPipeline;  // NCCL's all-to-all is sends and receives
  return data;
}

using GroupKey = std::tuple<std::string, std::string, bool>;  // name, ranks, point to point

bool is_point_to_point(std::string_view op) { return op == "send" || op == "recv"; }

/// Sequences by named group, and the rest by stream.
struct Sequences {
  std::map<GroupKey, std::map<int, Sequence>> named;
  std::map<GroupKey, std::string> description;
  std::vector<Sequence> nameless;
};

Sequences sequences_of(const std::vector<RankTrace>& traces) {
  Sequences result;
  for (std::size_t r = 0; r < traces.size(); ++r) {
    const RankTrace& t = traces[r];
    std::map<std::pair<std::int32_t, std::int32_t>, Sequence> by_stream;
    for (std::size_t i = 0; i < t.device.size(); ++i) {
      if (t.device.work[i] != trace::Work::kCommunication) continue;
      const std::int32_t c = t.device.collective[i];
      const CollectiveInfo* info = c >= 0 ? &t.collectives[static_cast<std::size_t>(c)] : nullptr;
      if (info == nullptr || (info->group == trace::kNoName && info->ranks == trace::kNoName)) {
        Sequence& s = by_stream[{t.device.device[i], t.device.stream[i]}];
        s.member = static_cast<int>(r);
        s.events.push_back(i);
        continue;
      }
      const GroupKey key{std::string(t.names[info->group]), std::string(t.names[info->ranks]), is_point_to_point(t.names[info->op])};
      Sequence& s = result.named[key][static_cast<int>(r)];
      s.member = static_cast<int>(r);
      s.events.push_back(i);
      result.description[key] = std::string(t.names[info->description]);
    }
    for (auto& [stream, s] : by_stream) result.nameless.push_back(std::move(s));
  }
  return result;
}

std::int64_t median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<std::string> signature_of(const std::vector<RankTrace>& traces, const Sequence& s) {
  std::vector<std::string> words;
  const RankTrace& t = traces[static_cast<std::size_t>(s.member)];
  for (const std::size_t i : s.events) words.emplace_back(t.names[t.device.name[i]]);
  return words;
}

std::int64_t median_duration(const std::vector<RankTrace>& traces, const Sequence& s) {
  const trace::DeviceEvents& d = traces[static_cast<std::size_t>(s.member)].device;
  std::vector<std::int64_t> durations;
  for (const std::size_t i : s.events) durations.push_back(d.end_ns[i] - d.start_ns[i]);
  return median(std::move(durations));
}

/// How far apart two sequences end, operation by operation, once a constant difference of clocks is taken out. Ranks of one
/// group end together; ranks of different groups do not.
std::int64_t misfit(const std::vector<RankTrace>& traces, const Sequence& a, const Sequence& b) {
  std::vector<std::int64_t> differences;
  const auto& end_a = traces[static_cast<std::size_t>(a.member)].device.end_ns;
  const auto& end_b = traces[static_cast<std::size_t>(b.member)].device.end_ns;
  for (std::size_t k = 0; k < a.events.size(); ++k) differences.push_back(end_a[a.events[k]] - end_b[b.events[k]]);
  const std::int64_t offset = median(differences);
  for (std::int64_t& d : differences) d = std::llabs(d - offset);
  return median(std::move(differences));
}

/// Sequences of different ranks with the same kernels in the same order, whose operations end together.
std::vector<std::vector<Sequence>> inferred_groups(const std::vector<RankTrace>& traces, std::vector<Sequence> nameless) {
  std::map<std::vector<std::string>, std::vector<Sequence>> alike;
  for (Sequence& s : nameless) alike[signature_of(traces, s)].push_back(std::move(s));
  std::vector<std::vector<Sequence>> groups;
  constexpr std::int64_t kTogether_ns = 100'000;  // ends of one collective spread by some microseconds; unrelated ones by far more
  constexpr std::int64_t kOfDuration = 20;        // over a slow network by up to 1/20 of their duration
  for (auto& [signature, sequences] : alike) {
    const std::size_t first_group = groups.size();
    for (Sequence& s : sequences) {
      std::vector<Sequence>* best = nullptr;
      std::int64_t best_misfit = std::max(kTogether_ns, median_duration(traces, s) / kOfDuration) + 1;
      for (std::size_t g = first_group; g < groups.size(); ++g) {
        const bool taken = std::any_of(groups[g].begin(), groups[g].end(), [&s](const Sequence& other) { return other.member == s.member; });
        if (taken) continue;
        const std::int64_t m = misfit(traces, groups[g].front(), s);
        if (m < best_misfit) {
          best_misfit = m;
          best = &groups[g];
        }
      }
      if (best != nullptr) {
        best->push_back(std::move(s));
      } else {
        groups.push_back({std::move(s)});
      }
    }
  }
  return groups;
}

/// Position of the first operation that all ranks recorded: sequence numbers where present, else the shortest is taken to
/// have lost its beginning, since recordings end together but begin as each rank's profiler starts.
std::vector<std::size_t> common_starts(const std::vector<RankTrace>& traces, const std::vector<const Sequence*>& sequences) {
  std::vector<std::size_t> starts(sequences.size(), 0);
  const auto number = [&traces](const Sequence& s, std::size_t k) {
    const RankTrace& t = traces[static_cast<std::size_t>(s.member)];
    const std::int32_t c = t.device.collective[s.events[k]];
    return c >= 0 ? t.collectives[static_cast<std::size_t>(c)].sequence : -1;
  };
  std::int64_t first = -1;
  for (const Sequence* s : sequences) first = std::max(first, number(*s, 0));
  std::size_t shortest = sequences.front()->events.size();
  for (const Sequence* s : sequences) shortest = std::min(shortest, s->events.size());
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& s = *sequences[i];
    if (first < 0) {
      starts[i] = s.events.size() - shortest;
    } else {
      while (starts[i] < s.events.size() && number(s, starts[i]) < first) ++starts[i];
    }
  }
  return starts;
}

void add_group(const std::vector<RankTrace>& traces, const std::vector<const Sequence*>& sequences, const std::string& label,
               const std::string& description, bool inferred, std::vector<MatchedCollective>& out) {
  const std::vector<std::size_t> starts = common_starts(traces, sequences);
  std::size_t count = sequences.front()->events.size();
  for (std::size_t i = 0; i < sequences.size(); ++i) count = std::min(count, sequences[i]->events.size() - starts[i]);
  for (std::size_t k = 0; k < count; ++k) {
    MatchedCollective m;
    m.group = label;
    m.inferred = inferred;
    m.index = static_cast<int>(k);
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      m.members.push_back(sequences[i]->member);
      m.events.push_back(sequences[i]->events[starts[i] + k]);
    }
    const RankTrace& t = traces[static_cast<std::size_t>(m.members.front())];
    const auto op = op_of(t, m.events.front());
    m.op_known = op.has_value();
    m.op = op.value_or(Op::kAllReduce);
    const std::int32_t c = t.device.collective[m.events.front()];
    if (c >= 0) {
      const CollectiveInfo& info = t.collectives[static_cast<std::size_t>(c)];
      m.group_size = static_cast<int>(std::clamp<std::int64_t>(info.group_size, 0, 1 << 30));
      m.bytes = bytes_of(t, info, m.op);
    } else if (sequences.size() > 1) {
      m.group_size = static_cast<int>(sequences.size());
    }
    m.dimension = dimension_of(description, m.op, m.group_size);
    out.push_back(std::move(m));
  }
}

bool is_symmetric(Op op) { return op == Op::kAllReduce || op == Op::kAllGather || op == Op::kReduceScatter || op == Op::kAllToAll; }

}  // namespace

double MatchedCollective::bus_bytes_per_s() const {
  if (bytes <= 0 || group_size < 2 || wire_ns() <= 0 || static_cast<int>(members.size()) < group_size) return 0;
  return static_cast<double>(bytes) / (static_cast<double>(wire_ns()) * 1e-9) * collective::bus_factor(op, group_size);
}

std::vector<MatchedCollective> match_collectives(const std::vector<RankTrace>& traces) {
  std::vector<MatchedCollective> out;
  Sequences sequences = sequences_of(traces);
  for (const auto& [key, by_rank] : sequences.named) {
    const std::string& description = sequences.description[key];
    std::vector<const Sequence*> members;
    for (const auto& [member, s] : by_rank) members.push_back(&s);
    add_group(traces, members, description.empty() ? std::get<0>(key) : std::get<0>(key) + " " + description, description, false, out);
  }
  int number = 0;
  for (const std::vector<Sequence>& group : inferred_groups(traces, std::move(sequences.nameless))) {
    std::vector<const Sequence*> members;
    for (const Sequence& s : group) members.push_back(&s);
    add_group(traces, members, "inferred " + std::to_string(number++), "", true, out);
  }
  return out;
}

namespace {

/// The end of a collective that two ranks shared: when, and by how much later the second rank saw it.
struct SharedEnd {
  std::int64_t at_ns = 0;
  std::int64_t later_ns = 0;
};

struct Alignment {
  std::int64_t offset_ns = 0;
  double drift = 0;
  std::int64_t error_ns = 0;
  std::int64_t from_ns = 0;  ///< drift counts from here
};

/// Robust line through the differences: drift from the medians of the outer thirds, offset as the median of the rest.
Alignment fit(std::vector<SharedEnd> shared) {
  std::stable_sort(shared.begin(), shared.end(), [](const SharedEnd& a, const SharedEnd& b) { return a.at_ns < b.at_ns; });
  const std::size_t n = shared.size();
  Alignment a;
  a.from_ns = shared.front().at_ns;
  constexpr std::size_t kEnoughForDrift = 12;
  if (n >= kEnoughForDrift) {
    const std::size_t third = n / 3;
    const auto part = [&shared, third](std::size_t from, std::int64_t SharedEnd::*field) {
      std::vector<std::int64_t> values;
      for (std::size_t k = from; k < from + third; ++k) values.push_back(shared[k].*field);
      return median(std::move(values));
    };
    const std::int64_t run = part(n - third, &SharedEnd::at_ns) - part(0, &SharedEnd::at_ns);
    const std::int64_t rise = part(n - third, &SharedEnd::later_ns) - part(0, &SharedEnd::later_ns);
    constexpr double kMostDrift = 1e-3;  // quartz stays within 100 ppm; more is no drift but something else
    if (run > 0) a.drift = static_cast<double>(rise) / static_cast<double>(run);
    if (std::fabs(a.drift) > kMostDrift) a.drift = 0;
  }
  std::vector<std::int64_t> rest;
  for (const SharedEnd& s : shared) rest.push_back(s.later_ns - std::llround(a.drift * static_cast<double>(s.at_ns - a.from_ns)));
  a.offset_ns = median(rest);
  for (std::int64_t& r : rest) r = std::llabs(r - a.offset_ns);
  a.error_ns = median(std::move(rest));
  return a;
}

/// Ends that not yet aligned ranks share with aligned ones.
std::vector<std::vector<SharedEnd>> shared_ends(const std::vector<RankTrace>& traces, const std::vector<MatchedCollective>& collectives,
                                                const std::vector<bool>& aligned) {
  std::vector<std::vector<SharedEnd>> shared(traces.size());
  for (const MatchedCollective& c : collectives) {
    if (!is_symmetric(c.op) && c.group_size <= 2) continue;
    const auto known = std::find_if(c.members.begin(), c.members.end(), [&](int m) { return aligned[static_cast<std::size_t>(m)]; });
    if (known == c.members.end()) continue;
    const std::size_t reference = static_cast<std::size_t>(known - c.members.begin());
    const std::int64_t end = traces[static_cast<std::size_t>(*known)].device.end_ns[c.events[reference]];
    for (std::size_t i = 0; i < c.members.size(); ++i) {
      const auto m = static_cast<std::size_t>(c.members[i]);
      if (!aligned[m]) shared[m].push_back({end, traces[m].device.end_ns[c.events[i]] - end});
    }
  }
  return shared;
}

void shift(RankTrace& trace, const Alignment& a) {
  for (auto* column : {&trace.device.start_ns, &trace.device.end_ns, &trace.host_events.start_ns, &trace.host_events.end_ns}) {
    for (std::int64_t& time : *column) {
      time -= a.offset_ns;
      time -= std::llround(a.drift * static_cast<double>(time - a.from_ns));
    }
  }
}

}  // namespace

void align_clocks(std::vector<RankTrace>& traces, const std::vector<MatchedCollective>& collectives, std::vector<RankResult>& ranks) {
  std::vector<bool> aligned(traces.size(), false);
  if (!traces.empty()) aligned[0] = true;
  for (bool progress = !traces.empty(); progress;) {
    progress = false;
    std::vector<std::vector<SharedEnd>> shared = shared_ends(traces, collectives, aligned);
    for (std::size_t m = 0; m < traces.size(); ++m) {
      if (aligned[m] || shared[m].empty()) continue;
      aligned[m] = progress = true;
      const Alignment a = fit(std::move(shared[m]));
      ranks[m].clock_error_ns = a.error_ns;
      // One clock, unless the ends differ by more than their own spread: a difference that small is not a clock's.
      constexpr std::int64_t kSameClock_ns = 20'000;
      if (std::llabs(a.offset_ns) <= kSameClock_ns + 3 * a.error_ns) continue;
      ranks[m].clock_offset_ns = -a.offset_ns;
      ranks[m].clock_drift = a.drift;
      shift(traces[m], a);
    }
  }
}

void time_collectives(const std::vector<RankTrace>& traces, const std::vector<RankResult>& ranks, std::vector<MatchedCollective>& collectives) {
  for (MatchedCollective& c : collectives) {
    std::int64_t error = 0;
    for (std::size_t i = 0; i < c.members.size(); ++i) {
      const trace::DeviceEvents& d = traces[static_cast<std::size_t>(c.members[i])].device;
      const std::int64_t start = d.start_ns[c.events[i]];
      const std::int64_t end = d.end_ns[c.events[i]];
      if (i == 0 || start > c.last_start_ns) c.late = c.members[i];
      c.first_start_ns = i == 0 ? start : std::min(c.first_start_ns, start);
      c.last_start_ns = i == 0 ? start : std::max(c.last_start_ns, start);
      c.first_end_ns = i == 0 ? end : std::min(c.first_end_ns, end);
      c.last_end_ns = i == 0 ? end : std::max(c.last_end_ns, end);
      error = std::max(error, ranks[static_cast<std::size_t>(c.members[i])].clock_error_ns);
    }
    if (c.members.size() < 2 || c.wait_ns() <= error) c.late = -1;
  }
  std::stable_sort(collectives.begin(), collectives.end(),
                   [](const MatchedCollective& a, const MatchedCollective& b) { return a.last_start_ns < b.last_start_ns; });
}

}  // namespace chokepoint::diagnose
