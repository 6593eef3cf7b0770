// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one or a few measured steps of a machine tell of its others: each source is calibrated on some of its rows and
// predicted on the rest, with the same method that `chokepoint calibrate` offers.
#include <chokepoint/validate/validate.hpp>
#include <string>
#include <vector>

namespace chokepoint::validate {

struct CalibratedSource {
  std::string source;
  int rows = 0;               ///< of trust A with a prediction
  int choices = 0;            ///< ways in which the rows to calibrate on were chosen
  double uncalibrated = 0;    ///< median |error| of the shipped constants
  double calibrated = 0;      ///< median over the choices of the median |error| of the rows held back
  double worst_choice = 0;    ///< the largest of these medians
};

struct CalibratedReport {
  int on_rows = 1;
  std::vector<CalibratedSource> sources;   ///< best first
  double median_uncalibrated = 0;
  double median_calibrated = 0;            ///< over sources
  int worse = 0;                           ///< sources that calibration made worse
};

/// Sources with at least `least_rows` rows of trust A; each calibrated on `on_rows` of them, chosen in up to 20 ways.
CalibratedReport calibrate_on_rows(const RunsReport& runs, int on_rows, int least_rows);

}  // namespace chokepoint::validate
