// SPDX-License-Identifier: Apache-2.0
// Tables of measurements: whatever the bytes, each row is predicted or says why not, and nothing crashes or hangs.
#include <chokepoint/validate/validate.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

using namespace chokepoint;

template <class Report>
void every_row_is_judged(const Result<Report>& report) {
  if (!report) {
    if (report.error().message.empty()) std::abort();
    return;
  }
  for (const auto& row : report->rows) {
    if (!row.error && row.reason.empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = validate::recognise_table(text, "t.csv");
  if (!table) return 0;
  switch (*table) {
    case validate::Table::kCollectives: every_row_is_judged(validate::validate_collectives(text, "t.csv")); break;
    case validate::Table::kMatmul: every_row_is_judged(validate::validate_matmul(text, "t.csv")); break;
    case validate::Table::kMeasuredCompute: (void)validate::validate_measured_compute(text, "t.json"); break;
    case validate::Table::kOom: (void)validate::validate_fits(text, "t.csv"); break;
    case validate::Table::kRuns:
      if (const auto runs = validate::validate_runs(text, "t.csv")) {
        for (const validate::RunRow& row : runs->rows) {
          if (row.has_figure && !row.step_time_error && row.reason.empty()) std::abort();
        }
      }
      break;
  }
  return 0;
}
