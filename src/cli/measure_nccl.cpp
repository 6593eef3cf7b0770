// SPDX-License-Identifier: Apache-2.0
// A window ends by what the messages say: NCCL's receives cannot be withdrawn, so a sender whose time is up marks one
// message, and both ends know that kDepth - 1 more follow it, which is as far ahead as a receiver may have posted. Message
// number j of every flow is in number j of its rank's groups, at both ends, so that groups never wait in a circle.
#include "measure_nccl.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <set>
#include <thread>

namespace chokepoint::commands {

using measure::Experiment;

namespace {

constexpr long kDepth = 4;                ///< messages of a flow under way at once
constexpr std::size_t kMostLanes = 8;     ///< flows of one rank that do not wait for each other; further ones share a lane
constexpr double kSilence_s = 60;         ///< without any message: something is broken

const void* pointer(CudaAddress address) { return reinterpret_cast<const void*>(address); }
void* target(CudaAddress address) { return reinterpret_cast<void*>(address); }

/// A lane for every flow so that the flows of one rank have different ones, as far as lanes go.
std::vector<std::size_t> lanes_of(const std::vector<measure::Flow>& flows) {
  std::map<int, std::set<std::size_t>> used;
  std::vector<std::size_t> lanes;
  for (const measure::Flow& flow : flows) {
    std::size_t lane = 0;
    while (lane < kMostLanes && (used[flow.from].count(lane) > 0 || used[flow.to].count(lane) > 0)) ++lane;
    if (lane == kMostLanes) lane = lanes.size() % kMostLanes;
    used[flow.from].insert(lane);
    used[flow.to].insert(lane);
    lanes.push_back(lane);
  }
  return lanes;
}

}  // namespace

struct GpuTransport::Flow {
  bool sends = false;
  int peer = 0;
  std::size_t number = 0;
  std::size_t length = 0;
  CudaAddress data = 0;
  CudaAddress marked = 0;          ///< sender: the message that says "time is up"
  unsigned char* marks = nullptr;  ///< receiver: first byte of the last kDepth messages
  long last = -1;                  ///< number of the last message, once it is known
  std::vector<measure::Arrival> arrivals;

  bool has(long message) const { return last < 0 || message <= last; }
};

struct GpuTransport::Lane {
  NcclComm comm = nullptr;
  CudaHandle stream = nullptr;
  std::array<CudaHandle, kDepth> events{};
  std::vector<Flow> flows;
  long issued = 0;
  long done = 0;

  bool finished() const {
    return done == issued && std::none_of(flows.begin(), flows.end(), [this](const Flow& flow) { return flow.has(issued); });
  }
};

Result<std::unique_ptr<GpuTransport>> GpuTransport::open(int rank_on_host, bool& has_gpu) {
  has_gpu = false;
  TRY_INTO(CudaDriver cuda, open_cuda_driver());
  has_gpu = true;
  TRY_INTO(NcclLibrary nccl, open_nccl());
  std::unique_ptr<GpuTransport> found(new GpuTransport(std::move(cuda), std::move(nccl)));
  int count = 0;
  found->cuda_.count(&count);
  if (count > 1 && rank_on_host >= count) {
    return fail("rank " + std::to_string(rank_on_host) + " of this host has no GPU of its own: it shows " + std::to_string(count), {}, {"start one rank for each GPU at most"});
  }
  int device = 0;
  CudaHandle context = nullptr;
  std::array<char, 32> address{};
  const int chosen = count > 1 ? rank_on_host : 0;
  const bool ready = found->cuda_.device(&device, chosen) == 0 && found->cuda_.retain(&context, device) == 0 && found->cuda_.set_current(context) == 0 &&
                     found->cuda_.pci_address(address.data(), static_cast<int>(address.size()), device) == 0;
  if (!ready) return fail("GPU " + std::to_string(chosen) + " cannot be used", {}, {"is another process using it alone (compute mode)?"});
  found->address_ = address.data();
  return found;
}

std::string GpuTransport::name() const {
  int version = 0;
  nccl_.version(&version);
  // NCCL's own numbering: 2708 is 2.7.8, from 2.9 on 20901 is 2.9.1.
  const int major = version >= 10000 ? version / 10000 : version / 1000;
  const int minor = version >= 10000 ? version / 100 % 100 : version / 100 % 10;
  return "nccl " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(version % 100);
}

/// Other ranks wait inside NCCL for what this one will not send any more: all have to end.
void GpuTransport::give_up(const std::string& why) const {
  std::array<char, MPI_MAX_PROCESSOR_NAME + 1> host{};
  int length = 0;
  MPI_Get_processor_name(host.data(), &length);
  std::cerr << "error: " << host.data() << ", GPU " << address_ << ": " << why << "\n  NCCL_DEBUG=WARN says more; --transport mpi measures without GPUs\n";
  MPI_Abort(MPI_COMM_WORLD, 3);
  std::abort();
}

void GpuTransport::check_cuda(int result, const char* call) const {
  if (result == 0) return;
  const char* words = nullptr;
  cuda_.error_text(result, &words);
  give_up(std::string(call) + ": " + (words == nullptr ? std::to_string(result) : words));
}

void GpuTransport::check_nccl(int result, const char* call) const {
  if (result != 0) give_up(std::string(call) + ": " + nccl_.error_text(result));
}

CudaAddress GpuTransport::memory(std::size_t bytes) const {
  CudaAddress address = 0;
  check_cuda(cuda_.allocate(&address, bytes), "cuMemAlloc");
  check_cuda(cuda_.fill(address, 0, bytes), "cuMemsetD8");
  check_cuda(cuda_.wait_for_stream(nullptr), "cuStreamSynchronize");  // fills run on a stream of their own
  return address;
}

void GpuTransport::open_lanes(std::size_t count) {
  int me = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  while (lanes_.size() < count) {
    NcclId id{};
    if (me == 0) check_nccl(nccl_.unique_id(&id), "ncclGetUniqueId");
    MPI_Bcast(id.bytes, sizeof id.bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    NcclComm comm = nullptr;
    check_nccl(nccl_.join(&comm, ranks, id, me), "ncclCommInitRank");
    CudaHandle stream = nullptr;
    check_cuda(cuda_.create_stream(&stream, CudaDriver::kNonBlocking), "cuStreamCreate");
    lanes_.push_back(comm);
    streams_.push_back(stream);
  }
}

/// The lane's next group: one message of each of the flows. `warm`: of one byte, so that NCCL joins the two ends.
void GpuTransport::post(Lane& lane, const std::vector<Flow*>& flows, bool warm) const {
  check_nccl(nccl_.group_start(), "ncclGroupStart");
  for (Flow* flow : flows) {
    const std::size_t length = warm ? 1 : flow->length;
    const bool marked = !warm && flow->last >= 0;
    if (flow->sends) check_nccl(nccl_.send(pointer(marked ? flow->marked : flow->data), length, NcclLibrary::kBytes, flow->peer, lane.comm, lane.stream), "ncclSend");
    else check_nccl(nccl_.receive(target(flow->data), length, NcclLibrary::kBytes, flow->peer, lane.comm, lane.stream), "ncclRecv");
  }
  check_nccl(nccl_.group_end(), "ncclGroupEnd");
}

/// Posts as far ahead as may be.
void GpuTransport::issue(Lane& lane, double now_s, double window_s) const {
  while (lane.issued - lane.done < kDepth) {
    std::vector<Flow*> flows;
    for (Flow& flow : lane.flows) {
      if (flow.sends && flow.last < 0 && now_s >= window_s) flow.last = lane.issued + kDepth - 1;
      if (flow.has(lane.issued)) flows.push_back(&flow);
    }
    if (flows.empty()) return;
    post(lane, flows, false);
    const auto slot = static_cast<std::size_t>(lane.issued % kDepth);
    for (const Flow* flow : flows) {
      if (!flow->sends) check_cuda(cuda_.copy_to_host(flow->marks + slot, flow->data, 1, lane.stream), "cuMemcpyDtoHAsync");
    }
    check_cuda(cuda_.record(lane.events[slot], lane.stream), "cuEventRecord");
    ++lane.issued;
  }
}

/// Groups that are through; false where there are none.
bool GpuTransport::take_in(Lane& lane, double now_s, double window_s) const {
  bool any = false;
  while (lane.done < lane.issued) {
    const auto slot = static_cast<std::size_t>(lane.done % kDepth);
    const int state = cuda_.query(lane.events[slot]);
    if (state == CudaDriver::kNotReady) break;
    check_cuda(state, "cuEventQuery");
    for (Flow& flow : lane.flows) {
      if (flow.sends || !flow.has(lane.done)) continue;
      const measure::Arrival before = flow.arrivals.empty() ? measure::Arrival{} : flow.arrivals.back();
      if (before.time_s <= window_s) flow.arrivals.push_back({now_s, before.bytes + static_cast<double>(flow.length)});
      if (flow.last < 0 && flow.marks[slot] != 0) flow.last = lane.done + kDepth - 1;
    }
    ++lane.done;
    any = true;
  }
  return any;
}

void GpuTransport::run(std::vector<Lane>& lanes, double window_s) const {
  const double start = MPI_Wtime();
  double heard = start;
  for (;;) {
    bool any = false;
    bool all = true;
    for (Lane& lane : lanes) {
      any = take_in(lane, MPI_Wtime() - start, window_s) || any;
      issue(lane, MPI_Wtime() - start, window_s);
      all = all && lane.finished();
    }
    if (all) return;
    const double now = MPI_Wtime();
    if (any) {
      heard = now;
      continue;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (now - heard < 1) continue;
    for (const Lane& lane : lanes) {
      int error = 0;
      check_nccl(nccl_.async_error(lane.comm, &error), "ncclCommGetAsyncError");
      if (error != 0 && error != NcclLibrary::kInProgress) check_nccl(error, "NCCL on its own");
    }
    if (now - heard > kSilence_s) give_up("no message came through for 60 s");
  }
}

std::vector<double> GpuTransport::window(const Experiment& experiment, const std::vector<int>& lengths, double window_s, double warm_share, int me) {
  const std::vector<std::size_t> lane_of = lanes_of(experiment.flows);
  const std::size_t count = lane_of.empty() ? 0 : *std::max_element(lane_of.begin(), lane_of.end()) + 1;
  open_lanes(count);
  std::vector<Lane> lanes(count);
  for (std::size_t f = 0; f < lengths.size(); ++f) {
    const measure::Flow& flow = experiment.flows[f];
    if (flow.from != me && flow.to != me) continue;
    Flow mine{flow.from == me, flow.from == me ? flow.to : flow.from, f, static_cast<std::size_t>(lengths[f]), 0, 0, nullptr, -1, {}};
    mine.data = memory(mine.length);
    if (mine.sends) {
      mine.marked = memory(mine.length);
      check_cuda(cuda_.fill(mine.marked, 1, 1), "cuMemsetD8");
      check_cuda(cuda_.wait_for_stream(nullptr), "cuStreamSynchronize");
    } else {
      void* marks = nullptr;
      check_cuda(cuda_.allocate_host(&marks, kDepth), "cuMemAllocHost");
      mine.marks = static_cast<unsigned char*>(marks);
    }
    lanes[lane_of[f]].flows.push_back(std::move(mine));
  }
  for (std::size_t l = 0; l < count; ++l) {
    Lane& lane = lanes[l];
    lane.comm = lanes_[l];
    lane.stream = streams_[l];
    for (CudaHandle& event : lane.events) check_cuda(cuda_.create_event(&event, CudaDriver::kWithoutTiming), "cuEventCreate");
    std::vector<Flow*> flows;
    for (Flow& flow : lane.flows) flows.push_back(&flow);
    if (!flows.empty()) post(lane, flows, true);
    check_cuda(cuda_.wait_for_stream(lane.stream), "cuStreamSynchronize");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  run(lanes, window_s);
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<double> rates(lengths.size(), 0);
  for (const Lane& lane : lanes) {
    for (const Flow& flow : lane.flows) {
      if (!flow.sends) rates[flow.number] = measure::arrival_rate(flow.arrivals, warm_share * window_s, window_s);
      check_cuda(cuda_.release(flow.data), "cuMemFree");
      if (flow.sends) check_cuda(cuda_.release(flow.marked), "cuMemFree");
      else check_cuda(cuda_.release_host(flow.marks), "cuMemFreeHost");
    }
    for (const CudaHandle event : lane.events) check_cuda(cuda_.destroy_event(event), "cuEventDestroy");
  }
  return rates;
}

std::vector<double> GpuTransport::messages(const Experiment& experiment, int me) {
  constexpr int kWarm = 2;
  open_lanes(1);
  const auto length = static_cast<std::size_t>(std::max(1.0, experiment.bytes));
  const auto repeats = static_cast<std::size_t>(experiment.repeats);
  const CudaAddress data = memory(length);
  std::vector<double> mine(experiment.flows.size() * repeats, 0);
  const auto send = [&](int peer) { check_nccl(nccl_.send(pointer(data), length, NcclLibrary::kBytes, peer, lanes_[0], streams_[0]), "ncclSend"); };
  const auto receive = [&](int peer) { check_nccl(nccl_.receive(target(data), length, NcclLibrary::kBytes, peer, lanes_[0], streams_[0]), "ncclRecv"); };
  MPI_Barrier(MPI_COMM_WORLD);
  for (std::size_t f = 0; f < experiment.flows.size(); ++f) {
    const measure::Flow& flow = experiment.flows[f];
    if (flow.from != me && flow.to != me) continue;
    const int peer = flow.from == me ? flow.to : flow.from;
    for (int i = -kWarm; i < experiment.repeats; ++i) {
      const double start = MPI_Wtime();
      if (flow.from == me) send(peer);
      receive(peer);
      if (flow.to == me) send(peer);
      check_cuda(cuda_.wait_for_stream(streams_[0]), "cuStreamSynchronize");
      if (flow.from == me && i >= 0) mine[f * repeats + static_cast<std::size_t>(i)] = (MPI_Wtime() - start) / 2;
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  check_cuda(cuda_.release(data), "cuMemFree");
  return mine;
}

NcclComm GpuTransport::communicator_of(const std::vector<int>& ranks, int me) {
  const auto known = groups_.find(ranks);
  if (known != groups_.end()) return known->second;
  const auto place = static_cast<int>(std::find(ranks.begin(), ranks.end(), me) - ranks.begin());
  MPI_Comm members = MPI_COMM_NULL;
  const bool member = place < static_cast<int>(ranks.size());
  MPI_Comm_split(MPI_COMM_WORLD, member ? 0 : MPI_UNDEFINED, place, &members);
  NcclComm comm = nullptr;
  if (member) {
    NcclId id{};
    if (place == 0) check_nccl(nccl_.unique_id(&id), "ncclGetUniqueId");
    MPI_Bcast(id.bytes, sizeof id.bytes, MPI_CHAR, 0, members);
    check_nccl(nccl_.join(&comm, static_cast<int>(ranks.size()), id, place), "ncclCommInitRank");
    MPI_Comm_free(&members);
  }
  groups_[ranks] = comm;
  return comm;
}

std::vector<double> GpuTransport::collective(const Experiment& experiment, int me) {
  std::vector<double> mine(static_cast<std::size_t>(experiment.repeats), 0);
  open_lanes(1);
  const NcclComm comm = communicator_of(experiment.ranks, me);
  if (comm == nullptr) {
    for (int repeat = -1; repeat < experiment.repeats; ++repeat) MPI_Barrier(MPI_COMM_WORLD);
    return mine;
  }
  const std::size_t ranks = experiment.ranks.size();
  const std::size_t count = std::max(ranks, static_cast<std::size_t>(experiment.bytes / sizeof(float)) / ranks * ranks);
  const CudaAddress from = memory(count * sizeof(float));
  const CudaAddress to = memory(count * sizeof(float));
  for (int repeat = -1; repeat < experiment.repeats; ++repeat) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    if (experiment.op == "all_reduce") check_nccl(nccl_.all_reduce(pointer(from), target(to), count, NcclLibrary::kFloats, NcclLibrary::kSum, comm, streams_[0]), "ncclAllReduce");
    if (experiment.op == "all_gather") check_nccl(nccl_.all_gather(pointer(from), target(to), count / ranks, NcclLibrary::kFloats, comm, streams_[0]), "ncclAllGather");
    if (experiment.op == "reduce_scatter") check_nccl(nccl_.reduce_scatter(pointer(from), target(to), count / ranks, NcclLibrary::kFloats, NcclLibrary::kSum, comm, streams_[0]), "ncclReduceScatter");
    check_cuda(cuda_.wait_for_stream(streams_[0]), "cuStreamSynchronize");
    if (repeat >= 0) mine[static_cast<std::size_t>(repeat)] = MPI_Wtime() - start;
  }
  check_cuda(cuda_.release(from), "cuMemFree");
  check_cuda(cuda_.release(to), "cuMemFree");
  return mine;
}

}  // namespace chokepoint::commands
