// SPDX-License-Identifier: Apache-2.0
// Log error of a step = weighted errors of its classes. Classes that were measured on the user's own machine are known
// better than those taken from a data sheet.
#include "uncertainty.hpp"

#include <cmath>

namespace chokepoint::simulate {

namespace {
/// Share of communication in a step from which its error shows in the band.
constexpr double kWorthSaying = 0.05;
}  // namespace

void set_band(const parallel::Job& job, const Constants& constants, Prediction& p) {
  const bool measured = job.cluster.measured.all_reduce || job.cluster.measured.host_all_reduce;
  const double network = measured ? constants.band_wires_measured : constants.band_wires;
  const double total = p.step_time_s > 0 ? p.step_time_s : 1;
  const auto share = [&](std::initializer_list<Bill> items) {
    double sum = 0;
    for (const Bill item : items) sum += p.item(item);
    return sum / total;
  };
  const double compute = share({Bill::kCompute, Bill::kRecompute, Bill::kOptimizer}) * constants.band_compute;
  const double wires = share({Bill::kTensor, Bill::kContext, Bill::kExpert, Bill::kPipeline, Bill::kDataGather, Bill::kDataReduce}) * network;
  const double host = share({Bill::kHost, Bill::kOther, Bill::kOffload}) * constants.band_host;
  const double bubble = share({Bill::kBubble}) * constants.band_bubble;
  const double generation = compute::has_product_table(job.accelerator.architecture) ? 0 : constants.band_generation;
  const double framework = job.framework_assumed ? constants.band_framework : 0;
  double variance = 0;
  for (const double error : {compute, wires, host, bubble, generation, framework, constants.band_source}) variance += error * error;
  const double sigma = std::sqrt(variance);
  constexpr double kEightyPercent = 1.2816;
  p.step_time_low_s = p.step_time_s * std::exp(-kEightyPercent * sigma);
  p.step_time_high_s = p.step_time_s * std::exp(kEightyPercent * sigma);
}

std::vector<Note> why_band_is_wide(const parallel::Job& job, const Prediction& p) {
  std::vector<Note> notes;
  double wires = 0;
  for (const Bill item : {Bill::kTensor, Bill::kContext, Bill::kExpert, Bill::kPipeline, Bill::kDataGather, Bill::kDataReduce}) wires += p.item(item);
  const bool measured = job.cluster.measured.all_reduce || job.cluster.measured.host_all_reduce;
  if (!measured && wires > kWorthSaying * p.step_time_s) {
    notes.push_back({"band: wider, as no collective was measured on this wiring (chokepoint calibrate takes nccl-tests tables)", {}});
  }
  if (!compute::has_product_table(job.accelerator.architecture)) {
    notes.push_back({"band: wider, as no table of matrix products of " + std::string(hardware::name(job.accelerator.architecture)) + " is public", {}});
  }
  if (job.framework_assumed) notes.push_back({"band: wider, as the framework is not known", {}});
  return notes;
}

}  // namespace chokepoint::simulate
