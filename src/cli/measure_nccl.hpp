// SPDX-License-Identifier: Apache-2.0
#pragma once
// The probe's experiments between GPUs: NCCL carries the bytes, MPI starts it and keeps the ranks in step. Tried against
// libraries made for the test alone (tests/nccl): no real GPU was at hand.
#include <chokepoint/measure/network_probe.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu_libraries.hpp"

namespace chokepoint::commands {

class GpuTransport {
 public:
  /// Both libraries and GPU number `rank_on_host`; where the launcher gave each rank one GPU, that.
  /// `has_gpu`: set where the driver is there and shows a GPU, whatever is missing else.
  static Result<std::unique_ptr<GpuTransport>> open(int rank_on_host, bool& has_gpu);

  const std::string& gpu_address() const { return address_; }
  /// "nccl 2.21.5"
  std::string name() const;

  /// Flows of `lengths` bytes a message until `window_s` is over; bytes per second of the flows that end here.
  std::vector<double> window(const measure::Experiment& experiment, const std::vector<int>& lengths, double window_s, double warm_share, int me);
  /// Ping-pong: seconds one way of each flow and repeat, on the rank that began.
  std::vector<double> messages(const measure::Experiment& experiment, int me);
  /// Seconds of each repeat on this rank.
  std::vector<double> collective(const measure::Experiment& experiment, int me);

 private:
  struct Flow;
  struct Lane;
  GpuTransport(CudaDriver cuda, NcclLibrary nccl) : cuda_(std::move(cuda)), nccl_(std::move(nccl)) {}

  void check_cuda(int result, const char* call) const;
  void check_nccl(int result, const char* call) const;
  [[noreturn]] void give_up(const std::string& why) const;
  CudaAddress memory(std::size_t bytes) const;
  /// Communicators of all ranks, one for each flow that a rank has at once; all ranks make them together.
  void open_lanes(std::size_t count);
  NcclComm communicator_of(const std::vector<int>& ranks, int me);
  void post(Lane& lane, const std::vector<Flow*>& flows, bool warm) const;
  bool take_in(Lane& lane, double now_s, double window_s) const;
  void issue(Lane& lane, double now_s, double window_s) const;
  void run(std::vector<Lane>& lanes, double window_s) const;

  CudaDriver cuda_;
  NcclLibrary nccl_;
  std::string address_;
  std::vector<NcclComm> lanes_;
  std::vector<CudaHandle> streams_;
  std::map<std::vector<int>, NcclComm> groups_;
};

}  // namespace chokepoint::commands
