// SPDX-License-Identifier: Apache-2.0
// The program that `chokepoint measure --network` becomes: MPI ranks that send what rank 0's probe asks for. It is a
// program of its own so that `chokepoint` itself starts where no MPI is installed (docs/decisions/0005).
//
// Rank 0 decides, the others wait for its orders with pauses, so that idle ranks leave the processors to busy ones.
#include <mpi.h>

#include <algorithm>
#include <chokepoint/measure/network_probe.hpp>
#include <chokepoint/report/network_view.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <thread>

#include "measure_nccl.hpp"
#include "measure_network.hpp"

namespace chokepoint::commands {
namespace {

using measure::Experiment;
using measure::ExperimentKind;
using measure::Flow;

constexpr int kOrderTag = 1;
constexpr int kDataTag = 2;      ///< plus the flow's number, below kFlowTags
constexpr int kFlowTags = 8192;
constexpr int kStopTag = 16384;  ///< last message of a flow
constexpr int kWindow = 8;       ///< messages of a flow under way at once; synchronous sends, so that buffers hold no more
constexpr double kWarmShare = 0.3;  ///< of a window: TCP's start, full token buckets
constexpr double kSleepAfter_s = 2e-3;

void pause_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// One direction of one flow on this rank: a ring of buffers and their requests.
struct Stream {
  bool sends = false;
  int peer = 0;
  int flow = 0;
  int length = 0;
  std::vector<char> data;
  std::vector<MPI_Request> requests;
  bool ended = false;              ///< sender: the last message is under way; receiver: it has come
  std::vector<measure::Arrival> arrivals;  ///< receiver: until the first after the window
};

void post(Stream& stream, std::size_t slot, bool last) {
  char* buffer = stream.data.data() + slot * static_cast<std::size_t>(stream.length);
  const int tag = kDataTag + stream.flow % kFlowTags + (last ? kStopTag : 0);
  if (stream.sends) MPI_Issend(buffer, stream.length, MPI_CHAR, stream.peer, tag, MPI_COMM_WORLD, &stream.requests[slot]);
  else MPI_Irecv(buffer, stream.length, MPI_CHAR, stream.peer, MPI_ANY_TAG, MPI_COMM_WORLD, &stream.requests[slot]);
}

/// A message has gone or come; what follows it in its slot.
void advance(Stream& stream, std::size_t slot, const MPI_Status& status, double now_s, double window_s) {
  if (stream.sends) {
    if (stream.ended) return;
    stream.ended = now_s >= window_s;
    post(stream, slot, stream.ended);
    return;
  }
  const measure::Arrival before = stream.arrivals.empty() ? measure::Arrival{} : stream.arrivals.back();
  if (before.time_s <= window_s) stream.arrivals.push_back({now_s, before.bytes + stream.length});
  if (status.MPI_TAG >= kStopTag) stream.ended = true;
  else if (!stream.ended) post(stream, slot, false);
}

bool done(const Stream& stream) {
  if (!stream.ended) return false;
  if (!stream.sends) return true;
  return std::all_of(stream.requests.begin(), stream.requests.end(), [](MPI_Request r) { return r == MPI_REQUEST_NULL; });
}

/// Sends until the window is over; receivers count what arrives after its first part. Messages keep their order, so the
/// receives still open after the last message match nothing and are withdrawn.
void run_streams(std::vector<Stream>& streams, double window_s) {
  for (Stream& stream : streams) {
    stream.data.assign(static_cast<std::size_t>(stream.length) * kWindow, 'c');
    stream.requests.assign(kWindow, MPI_REQUEST_NULL);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (Stream& stream : streams) {
    for (std::size_t slot = 0; slot < kWindow; ++slot) post(stream, slot, false);
  }
  double idle_since = start;
  for (;;) {
    bool any = false;
    bool all = true;
    for (Stream& stream : streams) {
      for (std::size_t slot = 0; slot < kWindow; ++slot) {
        if (stream.requests[slot] == MPI_REQUEST_NULL) continue;
        int ready = 0;
        MPI_Status status{};
        MPI_Test(&stream.requests[slot], &ready, &status);
        if (ready == 0) continue;
        any = true;
        advance(stream, slot, status, MPI_Wtime() - start, window_s);
      }
      all = all && done(stream);
    }
    if (all) break;
    const double now = MPI_Wtime();
    if (any) idle_since = now;
    else if (now - idle_since > kSleepAfter_s / 10) pause_for(50e-6);
  }
  for (Stream& stream : streams) {
    for (MPI_Request& request : stream.requests) {
      if (request == MPI_REQUEST_NULL) continue;
      MPI_Cancel(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Rates of flows seen so far, the same on every rank.
using KnownRates = std::map<std::pair<int, int>, double>;

/// What carries an experiment on this rank.
struct Carrier {
  int me = 0;
  std::unique_ptr<GpuTransport> gpus;   ///< null: MPI
  KnownRates known;
};

/// This rank's part of one window; rates of the flows that end here.
std::vector<double> one_window(const Experiment& experiment, const std::vector<int>& lengths, double window_s, const Carrier& carrier) {
  if (carrier.gpus) return carrier.gpus->window(experiment, lengths, window_s, kWarmShare, carrier.me);
  const int me = carrier.me;
  std::vector<Stream> streams;
  for (std::size_t f = 0; f < lengths.size(); ++f) {
    const Flow& flow = experiment.flows[f];
    if (flow.from != me && flow.to != me) continue;
    streams.push_back({flow.from == me, flow.from == me ? flow.to : flow.from, static_cast<int>(f), lengths[f], {}, {}, false, {}});
  }
  run_streams(streams, window_s);
  std::vector<double> rates(lengths.size(), 0);
  for (const Stream& stream : streams) {
    if (!stream.sends) rates[static_cast<std::size_t>(stream.flow)] = measure::arrival_rate(stream.arrivals, kWarmShare * window_s, window_s);
  }
  return rates;
}

/// Message lengths follow the rate, about 60 messages in a window; unknown flows run half a window first.
std::vector<double> bandwidth(const Experiment& experiment, Carrier& carrier) {
  // GPUs are started anew for each message, so theirs are longer.
  const double longest = (carrier.gpus ? 32.0 : 4.0) * 1024 * 1024;
  KnownRates& known = carrier.known;
  const std::size_t flows = experiment.flows.size();
  const auto repeats = static_cast<std::size_t>(experiment.repeats);
  std::vector<double> mine(flows * repeats, 0);
  const auto key = [&](std::size_t f) { return std::pair{experiment.flows[f].from, experiment.flows[f].to}; };
  bool all_known = true;
  for (std::size_t f = 0; f < flows; ++f) all_known = all_known && known.count(key(f)) > 0;
  if (!all_known) {
    std::vector<double> rates = one_window(experiment, std::vector<int>(flows, 8 * 1024), experiment.window_s * 0.5, carrier);
    MPI_Allreduce(MPI_IN_PLACE, rates.data(), static_cast<int>(flows), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (std::size_t f = 0; f < flows; ++f) known[key(f)] = rates[f];
  }
  std::vector<int> lengths(flows);
  for (std::size_t f = 0; f < flows; ++f) lengths[f] = static_cast<int>(std::clamp(known[key(f)] * experiment.window_s / 60, 4096.0, longest));
  for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
    const std::vector<double> rates = one_window(experiment, lengths, experiment.window_s, carrier);
    for (std::size_t f = 0; f < flows; ++f) mine[f * repeats + repeat] = rates[f];
  }
  return mine;
}

/// Ping-pong; half of the way there and back, on the rank that began.
std::vector<double> messages(const Experiment& experiment, std::size_t flow_count, int me) {
  constexpr int kWarm = 2;
  std::vector<double> mine(flow_count * static_cast<std::size_t>(experiment.repeats), 0);
  std::vector<char> buffer(static_cast<std::size_t>(std::max(1.0, experiment.bytes)), 'c');
  const int length = static_cast<int>(experiment.bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  for (std::size_t f = 0; f < flow_count; ++f) {
    const Flow& flow = experiment.flows[f];
    if (flow.from != me && flow.to != me) continue;
    const int peer = flow.from == me ? flow.to : flow.from;
    for (int i = -kWarm; i < experiment.repeats; ++i) {
      const double start = MPI_Wtime();
      if (flow.from == me) MPI_Send(buffer.data(), length, MPI_CHAR, peer, kDataTag, MPI_COMM_WORLD);
      MPI_Recv(buffer.data(), length, MPI_CHAR, peer, kDataTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (flow.to == me) MPI_Send(buffer.data(), length, MPI_CHAR, peer, kDataTag, MPI_COMM_WORLD);
      if (flow.from == me && i >= 0) mine[f * static_cast<std::size_t>(experiment.repeats) + static_cast<std::size_t>(i)] = (MPI_Wtime() - start) / 2;
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return mine;
}

void collective_once(const std::string& op, std::vector<float>& send, std::vector<float>& receive, int count, MPI_Comm group) {
  int ranks = 1;
  MPI_Comm_size(group, &ranks);
  if (op == "all_reduce") MPI_Allreduce(send.data(), receive.data(), count, MPI_FLOAT, MPI_SUM, group);
  if (op == "all_gather") MPI_Allgather(send.data(), count / ranks, MPI_FLOAT, receive.data(), count / ranks, MPI_FLOAT, group);
  if (op == "reduce_scatter") MPI_Reduce_scatter_block(send.data(), receive.data(), count / ranks, MPI_FLOAT, MPI_SUM, group);
}

/// Seconds of each repeat on the slowest rank.
std::vector<double> collective(const Experiment& experiment, int me) {
  std::vector<double> mine(static_cast<std::size_t>(experiment.repeats), 0);
  const bool member = std::find(experiment.ranks.begin(), experiment.ranks.end(), me) != experiment.ranks.end();
  MPI_Comm group = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, member ? 0 : MPI_UNDEFINED, me, &group);
  if (!member) return mine;
  const int ranks = static_cast<int>(experiment.ranks.size());
  const int count = std::max(ranks, static_cast<int>(experiment.bytes / sizeof(float)) / ranks * ranks);
  std::vector<float> send(static_cast<std::size_t>(count), 1.0F);
  std::vector<float> receive(static_cast<std::size_t>(count), 0.0F);
  for (int repeat = -1; repeat < experiment.repeats; ++repeat) {
    MPI_Barrier(group);
    const double start = MPI_Wtime();
    collective_once(experiment.op, send, receive, count, group);
    if (repeat >= 0) mine[static_cast<std::size_t>(repeat)] = MPI_Wtime() - start;
  }
  MPI_Comm_free(&group);
  return mine;
}

/// An order as numbers: what every rank needs to take its part.
std::vector<double> packed(const Experiment& experiment) {
  static const std::vector<std::string> ops{"", "all_reduce", "all_gather", "reduce_scatter"};
  std::vector<double> words{static_cast<double>(experiment.kind), experiment.bytes, experiment.window_s, static_cast<double>(experiment.repeats),
                            static_cast<double>(std::find(ops.begin(), ops.end(), experiment.op) - ops.begin()), static_cast<double>(experiment.flows.size())};
  for (const Flow& flow : experiment.flows) {
    words.push_back(flow.from);
    words.push_back(flow.to);
  }
  for (const int rank : experiment.ranks) words.push_back(rank);
  return words;
}

Experiment unpacked(const std::vector<double>& words) {
  static const std::vector<std::string> ops{"", "all_reduce", "all_gather", "reduce_scatter"};
  Experiment experiment;
  experiment.kind = static_cast<ExperimentKind>(static_cast<int>(words[0]));
  experiment.bytes = words[1];
  experiment.window_s = words[2];
  experiment.repeats = static_cast<int>(words[3]);
  experiment.op = ops[static_cast<std::size_t>(words[4])];
  const auto flows = static_cast<std::size_t>(words[5]);
  std::size_t at = 6;
  for (std::size_t f = 0; f < flows; ++f, at += 2) experiment.flows.push_back({static_cast<int>(words[at]), static_cast<int>(words[at + 1])});
  for (; at < words.size(); ++at) experiment.ranks.push_back(static_cast<int>(words[at]));
  return experiment;
}

/// Takes this rank's part; on rank 0 the largest answer of all ranks, which is that of the one rank that has one.
std::vector<double> take_part(const Experiment& experiment, Carrier& carrier) {
  std::vector<double> mine;
  if (experiment.kind == ExperimentKind::kBandwidth) mine = bandwidth(experiment, carrier);
  else if (experiment.kind == ExperimentKind::kMessage) mine = carrier.gpus ? carrier.gpus->messages(experiment, carrier.me) : messages(experiment, experiment.flows.size(), carrier.me);
  else mine = carrier.gpus ? carrier.gpus->collective(experiment, carrier.me) : collective(experiment, carrier.me);
  std::vector<double> all(mine.size(), 0);
  MPI_Reduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return all;
}

/// Waits for orders until an empty one comes.
void serve(Carrier& carrier) {
  for (;;) {
    int waiting = 0;
    MPI_Status status{};
    while (waiting == 0) {
      MPI_Iprobe(0, kOrderTag, MPI_COMM_WORLD, &waiting, &status);
      if (waiting == 0) pause_for(200e-6);
    }
    int length = 0;
    MPI_Get_count(&status, MPI_DOUBLE, &length);
    std::vector<double> words(static_cast<std::size_t>(length));
    MPI_Recv(words.data(), length, MPI_DOUBLE, 0, kOrderTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (words.size() < 6) return;
    take_part(unpacked(words), carrier);
  }
}

/// First line of a small file; empty when there is none.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

class MpiRunner final : public measure::Runner {
 public:
  MpiRunner(std::vector<std::string> hosts, std::string transport, int mtu, Carrier& carrier, std::vector<std::string> notes)
      : hosts_(std::move(hosts)), transport_(std::move(transport)), mtu_(mtu), start_(MPI_Wtime()), carrier_(carrier), notes_(std::move(notes)) {}
  std::vector<std::string> host_of_rank() const override { return hosts_; }
  std::string transport() const override { return transport_; }
  int mtu() const override { return mtu_; }
  std::vector<std::string> notes() const override { return notes_; }
  double elapsed_s() const override { return MPI_Wtime() - start_; }
  Result<measure::Outcome> run(const Experiment& experiment) override {
    const std::vector<double> words = packed(experiment);
    order(words);
    const std::vector<double> answers = take_part(experiment, carrier_);
    const auto repeats = static_cast<std::size_t>(experiment.repeats);
    measure::Outcome outcome;
    for (std::size_t at = 0; at + repeats <= answers.size() && repeats > 0; at += repeats) {
      outcome.emplace_back(answers.begin() + static_cast<std::ptrdiff_t>(at), answers.begin() + static_cast<std::ptrdiff_t>(at + repeats));
    }
    return outcome;
  }
  void finish() const { order({}); }

 private:
  void order(const std::vector<double>& words) const {
    for (int rank = 1; rank < static_cast<int>(hosts_.size()); ++rank) {
      MPI_Send(words.data(), static_cast<int>(words.size()), MPI_DOUBLE, rank, kOrderTag, MPI_COMM_WORLD);
    }
  }
  std::vector<std::string> hosts_;
  std::string transport_;
  int mtu_;
  double start_;
  Carrier& carrier_;
  std::vector<std::string> notes_;
};

/// Every rank's host name, on every rank. CHOKEPOINT_HOST_NAME stands in where several "hosts" share one kernel.
std::vector<std::string> host_names(int ranks) {
  char name[MPI_MAX_PROCESSOR_NAME + 1] = {};
  int length = 0;
  MPI_Get_processor_name(name, &length);
  if (const char* given = std::getenv("CHOKEPOINT_HOST_NAME"); given != nullptr && *given != '\0') std::strncpy(name, given, MPI_MAX_PROCESSOR_NAME);
  std::vector<char> all(static_cast<std::size_t>(ranks) * sizeof name);
  MPI_Allgather(name, sizeof name, MPI_CHAR, all.data(), sizeof name, MPI_CHAR, MPI_COMM_WORLD);
  std::vector<std::string> names;
  for (int rank = 0; rank < ranks; ++rank) names.emplace_back(all.data() + static_cast<std::size_t>(rank) * sizeof name);
  return names;
}

/// What Open MPI was told to send with; other libraries do not say.
std::string transport_name() {
  const char* btl = std::getenv("OMPI_MCA_btl");
  if (btl != nullptr && std::strstr(btl, "tcp") != nullptr && std::strchr(btl, '^') == nullptr) return "tcp";
  const char* pml = std::getenv("OMPI_MCA_pml");
  return pml == nullptr ? "" : pml;
}

/// MTU of the interface that Open MPI's TCP was told to use; 0 where none is named.
int interface_mtu() {
  const char* name = std::getenv("OMPI_MCA_btl_tcp_if_include");
  if (name == nullptr || std::strchr(name, '/') != nullptr) return 0;
  const std::string line = first_line("/sys/class/net/" + std::string(name) + "/mtu");
  return line.empty() ? 0 : std::atoi(line.c_str());
}

/// What a rank says about its GPU, for all to read.
struct GpuWord {
  int ready = 0;
  int seen = 0;
  char text[240] = {};    ///< PCI address, or why there is none
};

/// NCCL where every rank has a GPU of its own; else nothing, and why.
std::string choose_carrier(const std::vector<std::string>& hosts, Carrier& carrier, bool& any_gpu) {
  const auto me = static_cast<std::size_t>(carrier.me);
  const auto on_host = static_cast<int>(std::count(hosts.begin(), hosts.begin() + carrier.me, hosts[me]));
  bool seen = false;
  Result<std::unique_ptr<GpuTransport>> opened = GpuTransport::open(on_host, seen);
  GpuWord mine;
  mine.ready = opened ? 1 : 0;
  mine.seen = seen ? 1 : 0;
  const std::string words = opened ? (*opened)->gpu_address() : opened.error().message;
  std::strncpy(mine.text, words.c_str(), sizeof mine.text - 1);
  std::vector<GpuWord> all(hosts.size());
  MPI_Allgather(&mine, sizeof mine, MPI_CHAR, all.data(), sizeof mine, MPI_CHAR, MPI_COMM_WORLD);
  std::map<std::pair<std::string, std::string>, std::size_t> owner;
  std::string why;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    any_gpu = any_gpu || all[rank].seen != 0;
    if (all[rank].ready == 0 && why.empty()) why = hosts[rank] + ": " + all[rank].text;
    const auto [first, fresh] = owner.emplace(std::pair{hosts[rank], std::string(all[rank].text)}, rank);
    if (!fresh && why.empty()) why = hosts[rank] + ": ranks " + std::to_string(first->second) + " and " + std::to_string(rank) + " have one GPU, " + all[rank].text;
  }
  if (why.empty()) carrier.gpus = std::move(*opened);
  return why;
}

int control(const NetworkOptions& options, const std::vector<std::string>& hosts, Carrier& carrier, std::vector<std::string> notes) {
  const bool gpus = carrier.gpus != nullptr;
  MpiRunner runner(hosts, gpus ? carrier.gpus->name() : transport_name(), gpus ? 0 : interface_mtu(), carrier, std::move(notes));
  const int code = run_network_probe(options, runner);
  runner.finish();
  return code;
}

/// All of it on this rank; the exit code on rank 0.
int probe_on_rank(const NetworkOptions& options, int me, int ranks) {
  const std::vector<std::string> hosts = host_names(ranks);
  Carrier carrier;
  carrier.me = me;
  std::vector<std::string> notes;
  if (options.transport != "mpi") {
    bool any_gpu = false;
    const std::string why = choose_carrier(hosts, carrier, any_gpu);
    if (!why.empty() && options.transport == "nccl") return me == 0 ? report_error(Error{"NCCL cannot be used: " + why, {}, {"--transport mpi measures without GPUs"}}) : 2;
    if (!why.empty() && any_gpu) notes.push_back("measured with MPI, not with NCCL between GPUs: " + why);
  }
  if (me == 0) return control(options, hosts, carrier, std::move(notes));
  serve(carrier);
  return 0;
}

}  // namespace
}  // namespace chokepoint::commands

int main(int argc, char** argv) {
  using namespace chokepoint::commands;
  const std::optional<NetworkOptions> options = parse_network_options(argc, argv);
  MPI_Init(&argc, &argv);
  int me = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int code = 2;
  if (options) {
    code = probe_on_rank(*options, me, ranks);
    MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return code;
}
