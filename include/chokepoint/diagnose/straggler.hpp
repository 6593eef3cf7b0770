// SPDX-License-Identifier: Apache-2.0
#pragma once
// What stragglers cost a pipelined job: its measured operations replayed as if every operation of a kind took the same
// time. Names and metrics follow the published study of such jobs (ByteDance, "Understanding Stragglers in Large Model
// Training Using What-if Analysis", OSDI 2025), so that results can be laid side by side.
#include <chokepoint/base/result.hpp>
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/trace/op_timeline.hpp>
#include <map>
#include <string>
#include <vector>

namespace chokepoint::diagnose {

struct StragglerStep {
  int number = 0;               ///< as the trainer counts
  double measured_s = 0;
  double without_delay_s = 0;   ///< replayed, every operation launched at once
  double ideal_s = 0;           ///< and every operation of a kind as long as their mean (transfers: median)
};

/// One pipeline stage of one data-parallel rank.
struct Worker {
  int data_rank = 0;
  int stage = 0;
  double slowdown = 1;          ///< ideal step with this worker's operations as measured, over ideal: at most the smaller of its row's and column's
  DeviceTime time;              ///< summed over steps; busy = computing
  MeasuredBill bill;            ///< summed over steps
};

struct StragglerReport {
  std::string file;
  std::vector<StragglerStep> steps;
  double measured_s = 0;        ///< means over steps
  double without_delay_s = 0;
  double ideal_s = 0;
  double slowdown = 1;          ///< without_delay / ideal
  double launch_slowdown = 1;   ///< measured / without_delay
  std::map<std::string, double> by_type;  ///< ideal with this kind as measured, over ideal
  std::vector<double> by_data_rank;
  std::vector<double> by_stage;
  std::vector<Worker> workers;            ///< by stage, then data rank
  double worker_metric = 0;     ///< share of the slowdown that leaves with the slowest 3 % of workers
  double stage_metric = 0;      ///< share that leaves with the last stage
  std::vector<int> slowest;     ///< positions in `workers` of those 3 %
  std::vector<Cause> causes;    ///< sum to measured - ideal
  std::string choke_point;
  std::vector<Note> notes;
};

Result<StragglerReport> find_stragglers(const trace::OpTimeline& timeline);

}  // namespace chokepoint::diagnose
