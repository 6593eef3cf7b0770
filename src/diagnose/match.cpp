// SPDX-License-Identifier: Apache-2.0
#include "match.hpp"

#include <algorithm>
#include <chokepoint/trace/trace.hpp>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
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
  std::ptrdiff_t shift = 0;         ///< of inferred groups: place of the first event in the numbering of the group's first sequence
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

/// Which way a message goes whose kernel says so ("gloo:send"); NCCL's kernels do both.
enum class Way { kNeither, kSend, kReceive };
Way way_of(std::string_view kernel) {
  const std::string word = lower_letters(kernel);
  const auto ends = [&word](std::string_view end) { return word.size() >= end.size() && word.compare(word.size() - end.size(), end.size(), end) == 0; };
  if (ends("sendrecv")) return Way::kNeither;
  return ends("send") ? Way::kSend : ends("recv") ? Way::kReceive : Way::kNeither;
}
Way way_of(const RankTrace& t, std::size_t event) {
  const std::int32_t c = t.device.collective[event];
  return way_of(c >= 0 ? t.names[t.collectives[static_cast<std::size_t>(c)].op] : t.names[t.device.name[event]]);
}

/// The operations of a sequence that all members take part in.
Sequence without_messages(const std::vector<RankTrace>& traces, const Sequence& s) {
  const RankTrace& t = traces[static_cast<std::size_t>(s.member)];
  Sequence rest{s.member, {}, 0};
  for (const std::size_t i : s.events) {
    if (way_of(t, i) == Way::kNeither) rest.events.push_back(i);
  }
  return rest;
}

std::int64_t median_duration(const trace::DeviceEvents& d, const Sequence& s) {
  std::vector<std::int64_t> durations;
  for (const std::size_t i : s.events) durations.push_back(d.end_ns[i] - d.start_ns[i]);
  return median(std::move(durations));
}

std::int64_t median_period(const trace::DeviceEvents& d, const Sequence& s) {
  std::vector<std::int64_t> periods;
  for (std::size_t k = 1; k < s.events.size(); ++k) periods.push_back(d.end_ns[s.events[k]] - d.end_ns[s.events[k - 1]]);
  return median(std::move(periods));
}

/// How far apart the ends of one group's operations may lie.
std::int64_t tolerance_of(const std::vector<RankTrace>& traces, const Sequence& s) {
  constexpr std::int64_t kTogether_ns = 100'000;  // ends of one collective spread by some microseconds; unrelated ones by far more
  constexpr std::int64_t kOfDuration = 20;        // over a slow network by up to 1/20 of their duration
  constexpr std::int64_t kOfPeriod = 10;          // a host's threads wake late
  const trace::DeviceEvents& d = traces[static_cast<std::size_t>(s.member)].device;
  const bool on_host = !s.events.empty() && d.device[s.events.front()] < 0;
  return std::max({kTogether_ns, median_duration(d, s) / kOfDuration, on_host ? median_period(d, s) / kOfPeriod : 0});
}

struct Fit {
  std::int64_t misfit_ns = 0;
  std::int64_t offset_ns = 0;
};

/// How far apart two sequences end, operation by operation, once a constant difference of clocks is taken out; b's first
/// operation is a's number `shift`. Ranks of one group end together; ranks of different groups do not, and one may begin when
/// the other is over: none then.
std::optional<Fit> fit_at(const std::vector<RankTrace>& traces, const Sequence& a, const Sequence& b, std::ptrdiff_t shift, std::int64_t tolerance_ns) {
  const std::size_t from_a = shift > 0 ? static_cast<std::size_t>(shift) : 0;
  const std::size_t from_b = shift < 0 ? static_cast<std::size_t>(-shift) : 0;
  if (from_a >= a.events.size() || from_b >= b.events.size()) return std::nullopt;
  const std::size_t n = std::min(a.events.size() - from_a, b.events.size() - from_b);
  std::vector<std::int64_t> differences;
  const trace::DeviceEvents& da = traces[static_cast<std::size_t>(a.member)].device;
  const trace::DeviceEvents& db = traces[static_cast<std::size_t>(b.member)].device;
  for (std::size_t k = 0; k < n; ++k) differences.push_back(da.end_ns[a.events[from_a + k]] - db.end_ns[b.events[from_b + k]]);
  const std::int64_t offset = median(differences);
  std::size_t apart = 0;
  for (std::size_t k = 0; k < n; ++k) {
    const bool after = db.start_ns[b.events[from_b + k]] + offset > da.end_ns[a.events[from_a + k]] + tolerance_ns;
    const bool before = da.start_ns[a.events[from_a + k]] > db.end_ns[b.events[from_b + k]] + offset + tolerance_ns;
    apart += after || before ? 1 : 0;
  }
  constexpr std::size_t kFewApart = 10;  // one in ten: a damaged record or two
  if (apart * kFewApart > n) return std::nullopt;
  for (std::int64_t& d : differences) d = std::llabs(d - offset);
  const std::int64_t misfit = median(std::move(differences));
  return misfit <= tolerance_ns ? std::optional<Fit>({misfit, offset}) : std::nullopt;
}

/// Sequences of one group, and the kernels of the first, messages included.
struct Inferred {
  std::vector<std::string> signature;
  std::vector<Sequence> sequences;

  bool holds(int member) const {
    return std::any_of(sequences.begin(), sequences.end(), [member](const Sequence& s) { return s.member == member; });
  }
};

/// Groups whose kernels are the same in the same order, and which end together.
std::vector<Inferred> alike_groups(const std::vector<RankTrace>& traces, const std::vector<Sequence>& nameless) {
  std::map<std::vector<std::string>, std::vector<Sequence>> alike;
  for (const Sequence& s : nameless) {
    Sequence together = without_messages(traces, s);
    if (!together.events.empty()) alike[signature_of(traces, s)].push_back(std::move(together));
  }
  std::vector<Inferred> groups;
  for (auto& [signature, sequences] : alike) {
    const std::size_t first_group = groups.size();
    for (Sequence& s : sequences) {
      Inferred* best = nullptr;
      std::int64_t best_misfit = 0;
      for (std::size_t g = first_group; g < groups.size(); ++g) {
        if (groups[g].holds(s.member)) continue;
        const std::optional<Fit> fit = fit_at(traces, groups[g].sequences.front(), s, 0, tolerance_of(traces, s));
        if (!fit || (best != nullptr && fit->misfit_ns >= best_misfit)) continue;
        best_misfit = fit->misfit_ns;
        best = &groups[g];
      }
      if (best != nullptr) {
        best->sequences.push_back(std::move(s));
      } else {
        groups.push_back({signature, {std::move(s)}});
      }
    }
  }
  return groups;
}

constexpr std::size_t kMostLost = 4;  // operations that one recording has more than another, at its ends

/// Places at which the shorter list stands in the longer one.
std::vector<std::size_t> places_of(const std::vector<std::string>& part, const std::vector<std::string>& whole) {
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at + part.size() <= whole.size(); ++at) {
    if (std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(at))) places.push_back(at);
  }
  return places;
}

std::size_t collectives_before(const std::vector<std::string>& signature, std::size_t end) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < end; ++i) count += way_of(signature[i]) == Way::kNeither ? 1 : 0;
  return count;
}

/// Of two recordings one may lack the first or last operations of the other. Of the places that fit, the one with the least
/// difference of clocks: recordings begin within one another's first step.
bool merge_lacking(const std::vector<RankTrace>& traces, Inferred& longer, const Inferred& shorter) {
  const std::size_t lost = longer.signature.size() - shorter.signature.size();
  if (lost == 0 || lost > kMostLost || shorter.signature.size() < 2 * lost) return false;
  for (const Sequence& s : shorter.sequences) {
    if (longer.holds(s.member)) return false;
  }
  const Sequence& s = shorter.sequences.front();
  std::optional<Fit> best;
  std::ptrdiff_t best_shift = 0;
  for (const std::size_t place : places_of(shorter.signature, longer.signature)) {
    const auto shift = static_cast<std::ptrdiff_t>(collectives_before(longer.signature, place));
    const std::optional<Fit> fit = fit_at(traces, longer.sequences.front(), s, shift, tolerance_of(traces, s));
    if (!fit || (best && std::llabs(fit->offset_ns) >= std::llabs(best->offset_ns))) continue;
    best = fit;
    best_shift = shift;
  }
  if (!best) return false;
  for (Sequence more : shorter.sequences) {
    more.shift = best_shift;
    longer.sequences.push_back(std::move(more));
  }
  return true;
}

/// Sequences of different ranks that do the same at the same time.
std::vector<std::vector<Sequence>> inferred_groups(const std::vector<RankTrace>& traces, const std::vector<Sequence>& nameless) {
  std::vector<Inferred> groups = alike_groups(traces, nameless);
  std::stable_sort(groups.begin(), groups.end(), [](const Inferred& a, const Inferred& b) { return a.signature.size() > b.signature.size(); });
  std::vector<Inferred> merged;
  for (Inferred& g : groups) {
    const bool taken = std::any_of(merged.begin(), merged.end(), [&](Inferred& longer) { return merge_lacking(traces, longer, g); });
    if (!taken) merged.push_back(std::move(g));
  }
  std::vector<std::vector<Sequence>> result;
  for (Inferred& g : merged) {
    std::sort(g.sequences.begin(), g.sequences.end(), [](const Sequence& a, const Sequence& b) { return a.member < b.member; });
    result.push_back(std::move(g.sequences));
  }
  return result;
}

/// Messages of one rank that do not say their peer.
struct Messages {
  std::vector<std::size_t> sent;
  std::vector<std::size_t> received;
};

/// The least time from a send's start to its receive's end, on the clocks of both: transfer and the clocks' difference.
std::int64_t least_passage(const RankTrace& from, const std::vector<std::size_t>& sent, const RankTrace& to, const std::vector<std::size_t>& received) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max() / 4;
  for (std::size_t k = 0; k < std::min(sent.size(), received.size()); ++k) {
    least = std::min(least, to.device.end_ns[received[k]] - from.device.start_ns[sent[k]]);
  }
  return least;
}

/// The last ones may not be over when a recording ends.
bool as_many(const std::vector<std::size_t>& sent, const std::vector<std::size_t>& received) {
  const std::size_t most = std::max(sent.size(), received.size());
  const std::size_t least = std::min(sent.size(), received.size());
  return most - least <= kMostLost && (least > 0 || most == 0);
}

bool sends_first(const RankTrace& t, const Messages& m) {
  if (m.sent.empty() || m.received.empty()) return m.received.empty();
  return t.device.start_ns[m.sent.front()] <= t.device.start_ns[m.received.front()];
}

void add_messages(const std::vector<RankTrace>& traces, int from, const std::vector<std::size_t>& sent, int to, const std::vector<std::size_t>& received,
                  std::vector<MatchedCollective>& out) {
  for (std::size_t k = 0; k < std::min(sent.size(), received.size()); ++k) {
    MatchedCollective m;
    m.group = "inferred messages " + std::to_string(traces[static_cast<std::size_t>(from)].rank) + " to " + std::to_string(traces[static_cast<std::size_t>(to)].rank);
    m.inferred = true;
    m.op = Op::kSendRecv;
    m.op_known = true;
    m.dimension = Bill::kPipeline;
    m.group_size = 2;
    m.index = static_cast<int>(k);
    m.members = {from, to};
    m.events = {sent[k], received[k]};
    out.push_back(std::move(m));
  }
}

/// Ranks that send each other as many messages as the other receives, nearest in time first.
void pair_messages(const std::vector<RankTrace>& traces, const std::vector<Sequence>& nameless, std::vector<MatchedCollective>& out) {
  std::map<int, Messages> by_rank;
  for (const Sequence& s : nameless) {
    for (const std::size_t i : s.events) {
      const Way way = way_of(traces[static_cast<std::size_t>(s.member)], i);
      if (way == Way::kSend) by_rank[s.member].sent.push_back(i);
      if (way == Way::kReceive) by_rank[s.member].received.push_back(i);
    }
  }
  std::vector<std::tuple<std::int64_t, int, int>> pairs;  // how far from nothing both ways' least passages are, both ranks
  for (auto first = by_rank.begin(); first != by_rank.end(); ++first) {
    for (auto second = std::next(first); second != by_rank.end(); ++second) {
      const Messages& mine = first->second;
      const Messages& theirs = second->second;
      if (!as_many(mine.sent, theirs.received) || !as_many(mine.received, theirs.sent)) continue;
      const RankTrace& a = traces[static_cast<std::size_t>(first->first)];
      const RankTrace& b = traces[static_cast<std::size_t>(second->first)];
      // Ranks of one stage do the same in the same order: of two that talk to each other, one begins by sending.
      if (sends_first(a, mine) == sends_first(b, theirs)) continue;
      // Far above 0 they do not wait for each other; far below it one would have received before the other sent.
      pairs.emplace_back(std::llabs(least_passage(a, mine.sent, b, theirs.received) + least_passage(b, theirs.sent, a, mine.received)), first->first, second->first);
    }
  }
  std::sort(pairs.begin(), pairs.end());
  std::set<int> paired;
  for (const auto& [slack, a, b] : pairs) {
    if (paired.count(a) != 0 || paired.count(b) != 0) continue;
    paired.insert(a);
    paired.insert(b);
    add_messages(traces, a, by_rank[a].sent, b, by_rank[b].received, out);
    add_messages(traces, b, by_rank[b].sent, a, by_rank[a].received, out);
  }
}

/// Position of the first operation that all ranks recorded: sequence numbers where present, else the shortest is taken to
/// have lost its beginning, since recordings end together but begin as each rank's profiler starts.
std::vector<std::size_t> common_starts(const std::vector<RankTrace>& traces, const std::vector<const Sequence*>& sequences, bool inferred) {
  std::vector<std::size_t> starts(sequences.size(), 0);
  std::ptrdiff_t latest = 0;
  for (const Sequence* s : sequences) latest = std::max(latest, s->shift);
  if (std::any_of(sequences.begin(), sequences.end(), [](const Sequence* s) { return s->shift != 0; })) {
    for (std::size_t i = 0; i < sequences.size(); ++i) starts[i] = static_cast<std::size_t>(latest - sequences[i]->shift);
    return starts;
  }
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
      starts[i] = inferred ? 0 : s.events.size() - shortest;
    } else {
      while (starts[i] < s.events.size() && number(s, starts[i]) < first) ++starts[i];
    }
  }
  return starts;
}

void add_group(const std::vector<RankTrace>& traces, const std::vector<const Sequence*>& sequences, const std::string& label,
               const std::string& description, bool inferred, std::vector<MatchedCollective>& out) {
  const std::vector<std::size_t> starts = common_starts(traces, sequences, inferred);
  std::size_t count = sequences.front()->events.size();
  for (std::size_t i = 0; i < sequences.size(); ++i) count = std::min(count, sequences[i]->events.size() - std::min(starts[i], sequences[i]->events.size()));
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

bool receives(const RankTrace& trace, std::size_t event) { return way_of(trace, event) == Way::kReceive; }

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
  pair_messages(traces, sequences.nameless, out);
  for (const std::vector<Sequence>& group : inferred_groups(traces, sequences.nameless)) {
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

void apply(const Alignment& a, RankTrace& trace, RankResult& rank) {
  rank.clock_error_ns = a.error_ns;
  // One clock, unless the ends differ by more than their own spread: a difference that small is not a clock's.
  constexpr std::int64_t kSameClock_ns = 20'000;
  if (std::llabs(a.offset_ns) <= kSameClock_ns + 3 * a.error_ns) return;
  rank.clock_offset_ns = -a.offset_ns;
  rank.clock_drift = a.drift;
  shift(trace, a);
}

/// From messages both ways between an aligned rank and one that is not: each bounds the clocks' difference from one side, as
/// nothing arrives before it is sent.
std::optional<Alignment> fit_messages(const std::vector<RankTrace>& traces, const std::vector<MatchedCollective>& collectives,
                                      const std::vector<bool>& aligned, int member) {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::map<int, std::pair<std::int64_t, std::int64_t>> passages;  // by peer: to the member, from it
  for (const MatchedCollective& c : collectives) {
    if (c.op != Op::kSendRecv || c.members.size() != 2) continue;
    const std::size_t mine = c.members[0] == member ? 0 : 1;
    const int peer = c.members[1 - mine];
    if (c.members[mine] != member || !aligned[static_cast<std::size_t>(peer)]) continue;
    const RankTrace& own = traces[static_cast<std::size_t>(member)];
    const RankTrace& other = traces[static_cast<std::size_t>(peer)];
    auto& [to, from] = passages.try_emplace(peer, kNone, kNone).first->second;
    if (way_of(other, c.events[1 - mine]) == Way::kSend) to = std::min(to, own.device.end_ns[c.events[mine]] - other.device.start_ns[c.events[1 - mine]]);
    if (way_of(own, c.events[mine]) == Way::kSend) from = std::min(from, other.device.end_ns[c.events[1 - mine]] - own.device.start_ns[c.events[mine]]);
  }
  std::optional<Alignment> best;
  for (const auto& [peer, both] : passages) {
    if (both.first == kNone || both.second == kNone) continue;
    Alignment a;
    a.offset_ns = (both.first - both.second) / 2;
    a.error_ns = std::max<std::int64_t>(0, (both.first + both.second) / 2);
    if (!best || a.error_ns < best->error_ns) best = a;
  }
  return best;
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
      apply(fit(std::move(shared[m])), traces[m], ranks[m]);
    }
    // Where no collective reaches, messages do.
    for (std::size_t m = 0; !progress && m < traces.size(); ++m) {
      if (aligned[m]) continue;
      const std::optional<Alignment> a = fit_messages(traces, collectives, aligned, static_cast<int>(m));
      if (!a) continue;
      aligned[m] = progress = true;
      apply(*a, traces[m], ranks[m]);
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
