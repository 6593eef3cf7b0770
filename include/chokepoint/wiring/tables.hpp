// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tables that benchmarks print: nccl-tests and rccl-tests, OSU micro-benchmarks, perftest (ib_write_bw ...), DeepSpeed's
// communication log; and matrices of pairs: p2pBandwidthLatencyTest, nvbandwidth, TransferBench, rocm-bandwidth-test.
#include <chokepoint/base/result.hpp>
#include <chokepoint/topology/topology.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::wiring {

enum class TableKind { kNcclTests, kOsu, kPerftest, kDeepSpeed, kCopy };
std::string_view name(TableKind kind);

struct TableRow {
  double bytes = 0;
  double count = 0;              ///< elements, or times the size occurred
  std::string op;                ///< where rows of one table differ (DeepSpeed)
  double time_s = 0;             ///< 0 when the table has none
  double algorithm_bytes_per_s = 0;
  double bus_bytes_per_s = 0;
  std::optional<double> in_place_time_s;
  std::optional<double> in_place_bus_bytes_per_s;
  std::string pair;              ///< "0-3": the devices of a point-to-point row, where said
  int line = 0;
};

/// A device line: "Rank 3 Group 0 Pid 1 on node0 device 3 [0000:cc:00] NVIDIA H200".
struct TableDevice {
  int rank = 0;
  std::string host;
  int device = 0;
  std::string bus_id;
  std::string name;
};

/// One benchmark; several runs of it printed one after the other are one table.
struct MeasuredTable {
  TableKind kind = TableKind::kNcclTests;
  std::string op;                ///< "all_reduce", "broadcast", "bandwidth", "ib_write_bw"; empty when unknown
  std::string title;
  std::vector<TableRow> rows;
  std::vector<TableDevice> devices;
  std::optional<double> average_bus_bytes_per_s;  ///< as printed last
  std::vector<std::pair<std::string, std::string>> settings;  ///< perftest's banner: Device, Link type, Mtu ...
  bool bidirectional = false;
  int header_line = 0;
  int wrong = 0;                 ///< rows whose result check failed
  std::vector<Note> notes;

  const TableRow* largest() const;
  double peak_bus_bytes_per_s() const;
  /// Ranks that bus bandwidth over algorithm bandwidth implies for this op; 0 when it says nothing.
  int implied_ranks() const;
  std::vector<std::string> hosts() const;
  int stated_ranks() const;      ///< from device lines: count, or highest rank + 1 when the list is elided
};
Result<MeasuredTable> read_nccl_tests(std::string_view text, const std::string& file);
Result<MeasuredTable> read_osu(std::string_view text, const std::string& file);
Result<MeasuredTable> read_perftest(std::string_view text, const std::string& file);
Result<MeasuredTable> read_deepspeed_comms(std::string_view text, const std::string& file);
/// The hosts that device lines name.
std::vector<topology::HostGroup> hosts_of(const MeasuredTable& table, const std::string& file);

enum class PairUnit { kBytesPerS, kSeconds, kAccess };

/// One square or rectangle of pairs.
struct PairMatrix {
  std::string title;
  PairUnit unit = PairUnit::kBytesPerS;
  std::vector<std::string> rows;      ///< "GPU0", "CPU0"
  std::vector<std::string> columns;
  std::vector<std::vector<std::optional<double>>> cells;
  bool bidirectional = false;
  std::optional<bool> peer_access;    ///< P2P=Enabled, P2P=Disabled
  bool host_memory = false;           ///< one side is the CPU
  bool titled = false;
  int line = 0;

  std::optional<double> lowest() const;   ///< off the diagonal
  std::optional<double> highest() const;
};

struct PairTables {
  std::vector<PairMatrix> matrices;
  std::vector<MeasuredTable> copies;  ///< tables by size (rocm-bandwidth-test, hipBusBandwidth)
  std::vector<TableDevice> devices;
  std::vector<std::pair<int, int>> no_access;  ///< "Device=0 CANNOT Access Peer Device=1"
  std::map<std::string, double> sums;          ///< nvbandwidth's SUM lines, bytes/s
  std::vector<Note> notes;
};
Result<PairTables> read_pair_tables(std::string_view text, const std::string& file);
/// GPUs of the largest matrix; measured bandwidths as direct links of a drawing without a tree.
topology::Host host_of(const PairTables& tables, const std::string& file);

}  // namespace chokepoint::wiring
