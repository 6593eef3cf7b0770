// SPDX-License-Identifier: Apache-2.0
#include "csv.hpp"

#include <chokepoint/validate/validate.hpp>

namespace chokepoint::validate {

Result<Table> recognise_table(std::string_view csv, const std::string& file) {
  const std::size_t first = csv.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && csv[first] == '{') return Table::kMeasuredCompute;
  // A quoted header cell may hold a line break, but no header needs more than its first 64 KiB.
  TRY_INTO(const CsvTable table, CsvTable::parse(csv.substr(0, 64 * 1024), file));
  if (table.has("busbw_GBs") || (table.has("op") && table.has("message_bytes"))) return Table::kCollectives;
  if (table.has("m") && table.has("n") && table.has("k")) return Table::kMatmul;
  const bool job = table.has("accelerator") && (table.has("n_gpus") || table.has("seq_len"));
  if (job && table.has("outcome")) return Table::kOom;
  if (job) return Table::kRuns;
  std::vector<std::string> notes = {"runs need at least accelerator and n_gpus (docs/validation.md)",
                                    "collectives need op and message_bytes", "matrix products need m, n and k"};
  return fail("the header is none of the known tables: runs, out of memory, collectives, matrix products", {file, 1, 1},
              std::move(notes));
}

}  // namespace chokepoint::validate
