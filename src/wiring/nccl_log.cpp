// SPDX-License-Identifier: Apache-2.0
// Lines are found by NCCL's own mark ("NCCL INFO", "NCCL WARN"), so that prefixes of launchers need no case of their own.
// Source of the line forms: NCCL's init.cc, net_ib.cc, transport files and enqueue.cc, versions 2.4 to 2.28.
#include <chokepoint/wiring/nccl_log.hpp>

#include "scan.hpp"

#include <chokepoint/base/text.hpp>
#include <chokepoint/base/units.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace chokepoint::wiring {

namespace {

constexpr std::size_t kMaxMessages = 200;
constexpr int kMaxRanks = 1 << 20;

void add_once(std::vector<std::string>& list, std::string_view text) {
  if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end()) list.emplace_back(text);
}

/// "NET/IB/3", "NET/IB/0(3)/GDRDMA" -> "NET/IB/n", "NET/IB/n/GDRDMA": which card does not matter for the kind.
std::string via_kind(std::string_view text) {
  std::string out;
  for (const std::string_view part : split(text, '/')) {
    if (!out.empty()) out += '/';
    const bool device = !part.empty() && is_digits(part.substr(0, 1)) && out.substr(0, 3) == "NET";
    out += device ? std::string_view("n") : part;
  }
  return out;
}

/// NCCL prints PCI addresses as one hexadecimal number: bus << 12 | device << 4 | function, the domain above.
std::string bus_of_number(std::string_view text) {
  const auto value = to_hex(text);
  if (!value || (*value & 0xf) > 7 || ((*value >> 4) & 0xff) > 0x1f) return {};
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", (*value >> 20) & 0xffffffffULL, (*value >> 12) & 0xff, (*value >> 4) & 0xff, *value & 0xf);
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}
  Result<NcclLog> read(std::string_view text);

 private:
  void line(std::string_view text, int number);
  void message(std::string_view text, bool warning, int number);
  void setting(std::string_view text, int number);
  void shell_settings(std::string_view text, int number);
  void network(std::string_view text, int number);
  void connection(std::string_view text, int number);
  void ring(std::string_view text);
  void rank(std::string_view text);
  void tuner(std::string_view text);
  void graph(std::string_view text, int number);
  void finish();
  void keep(std::vector<NcclMessage>& list, std::string_view text, int number) {
    if (list.size() < kMaxMessages) list.push_back({std::string(trim(text)), host_, number});
  }

  std::string file_;
  NcclLog log_;
  std::string host_;
  int device_ = -1;
  std::set<std::string> communicators_;
  std::map<std::string, std::size_t> tuner_at_;
  std::map<std::pair<int, int>, NcclRank> ranks_;  ///< by nranks, rank
  std::map<std::string, std::string> first_process_;
};

/// host:pid:tid and [device] before the mark.
void Reader::line(std::string_view text, int number) {
  for (;;) {
    const std::size_t info = text.find("NCCL INFO ");
    const std::size_t warn = text.find("NCCL WARN ");
    const std::size_t mark = std::min(info, warn);
    if (mark == std::string_view::npos) return shell_settings(text, number);
    ++log_.lines;
    const std::vector<std::string_view> words = split_blanks(text.substr(0, mark));
    host_.clear();
    device_ = -1;
    for (std::size_t i = words.size(); i-- > 0;) {
      const std::string_view word = words[i];
      if (word.size() > 2 && word.front() == '[' && word.back() == ']' && device_ < 0) device_ = to_int(word.substr(1, word.size() - 2)).value_or(-1);
      const std::vector<std::string_view> parts = split(word, ':');
      if (parts.size() < 3 || !is_digits(parts.back()) || !is_digits(parts[parts.size() - 2])) continue;
      std::string_view host = parts[parts.size() - 3];
      if (const std::size_t bracket = host.rfind('>'); bracket != std::string_view::npos) host.remove_prefix(bracket + 1);
      host_ = std::string(host);
      add_once(log_.hosts, host_);
      first_process_.emplace(host_, std::string(parts[parts.size() - 2]) + ":" + std::string(parts.back()));
      break;
    }
    std::string_view rest = text.substr(mark + std::string_view("NCCL INFO ").size());
    // Two processes may have written into one line.
    const std::size_t next = std::min(rest.find("NCCL INFO "), rest.find("NCCL WARN "));
    message(rest.substr(0, next), warn == mark, number);
    if (next == std::string_view::npos) return;
    text = rest;
  }
}

void Reader::message(std::string_view text, bool warning, int number) {
  text = trim(text);
  if (warning) keep(log_.warnings, text, number);
  if (contains(text, " set by environment to ")) return setting(text, number);
  if (text.substr(0, 8) == "Channel ") return contains(text, " via ") ? connection(text, number) : ring(text);
  if (text.substr(0, 6) == "Trees ") {
    log_.trees = std::max(log_.trees, static_cast<int>(std::count(text.begin(), text.end(), '[')));
    return;
  }
  if (text.substr(0, 5) == "Tree " || text.substr(0, 5) == "Ring ") {
    const auto index = leading_int(text.substr(5));
    int& count = text.front() == 'T' ? log_.trees : log_.ring_channels;
    if (index && *index < kMaxRanks) count = std::max(count, *index + 1);
    return;
  }
  if (text.substr(0, 2) == "+ " || contains(text, "=== System")) return keep(log_.topology_lines, text, number);
  if (text.substr(0, 8) == "Pattern ") return graph(text, number);
  if (contains(text, "coll channels")) {
    if (const auto count = leading_int(text)) ++log_.collective_channels[*count];
  } else if (contains(text, " Bytes -> Algo")) {
    tuner(text);
  } else if (contains(text, "comm 0x") || contains(text, "comm 0X")) {
    rank(text);
  } else if (text.substr(0, 11) == "Bootstrap :" || text.substr(0, 10) == "Bootstrap:") {
    if (const auto list = after(text, "Using ")) {
      std::string_view name = *list;
      if (const std::size_t bracket = name.find(']'); name.substr(0, 1) == "[" && bracket != std::string_view::npos) name.remove_prefix(bracket + 1);
      add_once(log_.bootstrap_interfaces, name.substr(0, name.find(':')));
    }
  } else {
    network(text, number);
  }
}

void Reader::setting(std::string_view text, int number) {
  const std::size_t at = text.find(" set by environment to ");
  const std::vector<std::string_view> before = split_blanks(text.substr(0, at));
  std::string_view value = trim(text.substr(at + std::string_view(" set by environment to ").size()));
  if (!value.empty() && value.back() == '.') value.remove_suffix(1);
  if (before.empty()) return;
  const NcclSetting found{std::string(before.back()), std::string(value), number};
  for (const NcclSetting& known : log_.settings) {
    if (known.name == found.name && known.value == found.value) return;
  }
  if (log_.settings.size() < kMaxMessages) log_.settings.push_back(found);
}

/// "export NCCL_IB_DISABLE=1", "-x NCCL_ALGO=Ring": settings in the commands that people paste with a log.
void Reader::shell_settings(std::string_view text, int number) {
  if (const auto version = after(text, "NCCL version ")) add_once(log_.versions, split_blanks(*version).empty() ? std::string_view() : split_blanks(*version).front());
  if (trim(text).substr(0, 1) == "#") return;
  for (std::size_t at = text.find("NCCL_"); at != std::string_view::npos; at = text.find("NCCL_", at + 1)) {
    std::size_t end = at;
    while (end < text.size() && (std::isupper(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_' || std::isdigit(static_cast<unsigned char>(text[end])) != 0)) ++end;
    if (end >= text.size() || text[end] != '=' || (at > 0 && std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0)) continue;
    std::string_view value = text.substr(end + 1);
    value = value.substr(0, value.find_first_of(" \t;'\")&\\"));
    const NcclSetting found{std::string(text.substr(at, end - at)), std::string(value), number};
    const bool known = std::any_of(log_.settings.begin(), log_.settings.end(), [&found](const NcclSetting& s) { return s.name == found.name && s.value == found.value; });
    if (!known && !value.empty() && log_.settings.size() < kMaxMessages) log_.settings.push_back(found);
  }
}

void Reader::network(std::string_view text, int number) {
  if (const auto version = after(text, "NCCL version ")) {
    const std::vector<std::string_view> words = split_blanks(*version);
    if (!words.empty()) add_once(log_.versions, words.front());
  }
  if (text.substr(0, 14) == "Using network ") {
    std::string_view name = trim(text.substr(14));
    add_once(log_.networks, name);
    log_.first_line.emplace("network " + std::string(name), number);
    return;
  }
  if (contains(text, "GPU Direct RDMA")) {
    const bool enabled = contains(text, "Enabled") || contains(text, "enabled");
    ++(enabled ? log_.gdr_enabled : log_.gdr_disabled);
    if (log_.gdr_lines.size() < 8) keep(log_.gdr_lines, text, number);
    return;
  }
  if (contains(text, "NET/Plugin") || contains(text, "NET plugin") || contains(text, "NET/OFI")) {
    if (log_.plugins.size() < 16) add_once(log_.plugins, text);
  }
  if (text.substr(0, 3) != "NET") return;
  if (log_.net_lines.size() < 32) keep(log_.net_lines, text, number);
  const auto list = after(text, "Using [");
  if (!list || !contains(text, "/IB :")) return;
  int count = 0;
  for (std::string_view item : split(*list, '[')) {
    const std::size_t close = item.find(']');
    if (close == std::string_view::npos) continue;
    item = trim(item.substr(close + 1));
    item = item.substr(0, item.find_first_of(" ;"));
    const std::size_t colon = item.find(':');
    if (colon == std::string_view::npos) continue;
    NcclNetDevice device{std::string(item.substr(0, colon)), leading_int(item.substr(colon + 1)).value_or(0), {}};
    const std::size_t slash = item.find('/');
    if (slash != std::string_view::npos) device.layer = std::string(item.substr(slash + 1));
    ++count;
    if (std::find(log_.devices.begin(), log_.devices.end(), device) == log_.devices.end()) log_.devices.push_back(std::move(device));
  }
  int& most = log_.devices_per_host[host_];
  most = std::max(most, count);
  log_.first_line.emplace("devices", number);
}

/// "Channel 00/0 : 7[cb000] -> 8[7000] [send] via NET/IB/3/GDRDMA".
void Reader::connection(std::string_view text, int number) {
  std::string_view via = *after(text, " via ");
  via = trim(via.substr(0, via.find(" comm ")));
  const std::string kind = via_kind(via);
  ++log_.via[kind];
  log_.first_line.emplace(kind, number);
  if (kind.substr(0, 4) == "NET/") {
    const std::vector<std::string_view> parts = split(via, '/');
    for (const std::string_view part : parts) {
      const auto index = leading_int(part);
      if (index && is_digits(part.substr(0, 1))) {
        ++log_.net_devices_used[host_ + "/" + std::to_string(*index)];
        break;
      }
    }
  }
}

/// "Channel 00/02 :    0   1   2   3": the ring in rank order.
void Reader::ring(std::string_view text) {
  const auto total = between(text, "/", ":");
  const auto order = after(text, " :");
  if (!total || !order) return;
  const auto channels = to_int(*total);
  if (!channels || *channels < 1 || *channels > 1024) return;
  log_.ring_channels = std::max(log_.ring_channels, *channels);
  std::vector<int> ranks;
  for (const std::string_view word : split_blanks(*order)) {
    const auto rank = to_int(word);
    if (!rank) break;
    ranks.push_back(*rank);
  }
  if (log_.rings.size() < 256) log_.rings.push_back(std::move(ranks));
}

/// "comm 0x.. rank 3 nranks 32 cudaDev 3 busId 4c000 - Init COMPLETE" and its shorter relatives.
void Reader::rank(std::string_view text) {
  const std::vector<std::string_view> words = split_blanks(text);
  NcclRank found;
  found.rank = -1;
  found.host = host_;
  int ranks = 0;
  std::string communicator;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string_view value = words[i + 1];
    if (words[i] == "rank") found.rank = to_int(value).value_or(-1);
    if (words[i] == "nranks" || words[i] == "nRanks") ranks = to_int(value).value_or(0);
    if (words[i] == "cudaDev") found.device = to_int(value).value_or(-1);
    if (words[i] == "busId") found.bus_id = bus_of_number(value);
    if (words[i] == "commId" || (words[i] == "comm" && communicator.empty())) communicator = std::string(value);
  }
  if (const auto bracket = between(text, "[nranks=", "]")) ranks = std::max(ranks, to_int(*bracket).value_or(0));
  if (ranks < 1 || ranks > kMaxRanks) return;
  log_.world = std::max(log_.world, ranks);
  if (communicators_.size() < (1U << 16)) communicators_.insert(host_ + communicator);
  if (found.rank >= 0 && found.rank < ranks) ranks_.emplace(std::make_pair(ranks, found.rank), found);
}

void Reader::tuner(std::string_view text) {
  NcclTunerChoice choice;
  const std::size_t at = text.find(" Bytes -> Algo");
  const std::vector<std::string_view> before = split_blanks(text.substr(0, at));
  if (before.empty()) return;
  choice.bytes = to_number(before.back()).value_or(0.0);
  const std::vector<std::string_view> words = split_blanks(text.substr(at + std::string_view(" Bytes -> ").size()));
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "Algo") choice.algorithm = std::string(words[i + 1]);
    if (words[i] == "proto" || words[i] == "Proto") choice.protocol = std::string(words[i + 1]);
    if (words[i] == "time") choice.time_s = to_number(words[i + 1]).value_or(0.0) * 1e-6;
  }
  const std::string key = fmt::format("{} {} {}", choice.bytes, choice.algorithm, choice.protocol);
  const auto [known, fresh] = tuner_at_.emplace(key, log_.tuner.size());
  if (!fresh) ++log_.tuner[known->second].count;
  else if (log_.tuner.size() < 4096) log_.tuner.push_back(std::move(choice));
  else tuner_at_.erase(known);
}

void Reader::graph(std::string_view text, int number) {
  NcclGraphLine line;
  line.line = number;
  const auto number_after = [&text](std::string_view mark) {
    const auto rest = after(text, mark);
    return rest ? leading_number(*rest).value_or(0.0) : 0.0;
  };
  line.pattern = static_cast<int>(std::clamp(number_after("Pattern "), 0.0, 100.0));
  line.channels = static_cast<int>(std::clamp(number_after("nChannels "), 0.0, 1024.0));
  const std::string_view mark = contains(text, "bw ") ? "bw " : "speed ";
  line.intra_bytes_per_s = gbyte(number_after(mark));
  if (const auto rates = after(text, mark)) {
    if (const auto inter = after(rates->substr(0, rates->find(',')), "/")) line.inter_bytes_per_s = gbyte(leading_number(*inter).value_or(0.0));
  }
  if (const auto types = after(text, "type ")) {
    const std::vector<std::string_view> pair = split(types->substr(0, types->find_first_of(", ")), '/');
    if (!pair.empty()) line.intra_type = std::string(pair[0]);
    if (pair.size() > 1) line.inter_type = std::string(pair[1]);
  }
  if (log_.graphs.size() < 64) log_.graphs.push_back(std::move(line));
}

void Reader::finish() {
  log_.communicators = static_cast<int>(communicators_.size());
  for (const auto& [key, found] : ranks_) {
    if (key.first == log_.world) log_.ranks.push_back(found);
  }
  const bool partial = !log_.ranks.empty() && static_cast<int>(log_.ranks.size()) < log_.world;
  if (partial) {
    log_.notes.push_back({fmt::format("{} of {} ranks appear in the log; it may be cut short", log_.ranks.size(), log_.world), {file_, 0, 0}});
  }
}

Result<NcclLog> Reader::read(std::string_view text) {
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    line(text.substr(0, end), ++number);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  if (log_.lines == 0) {
    return fail("no line of NCCL's log", {file_, 0, 0}, {"run the job with NCCL_DEBUG=INFO and save its output"});
  }
  finish();
  return std::move(log_);
}

}  // namespace

bool NcclLog::over_network() const { return network_connections() > 0; }

int NcclLog::network_connections() const {
  int sum = 0;
  for (const auto& [kind, count] : via) sum += kind.substr(0, 4) == "NET/" ? count : 0;
  return sum;
}

int NcclLog::gdr_connections() const {
  int sum = 0;
  for (const auto& [kind, count] : via) sum += kind.substr(0, 4) == "NET/" && contains(kind, "GDRDMA") ? count : 0;
  return sum;
}

Result<NcclLog> read_nccl_log(std::string_view text, const std::string& file) { return Reader(file).read(text); }

}  // namespace chokepoint::wiring
