// SPDX-License-Identifier: Apache-2.0
#pragma once
// Readers of profiler output. Formats are recognised by content, never by file name; the file is streamed, so that memory
// holds the columns and a window of some MiB.
#include <chokepoint/base/result.hpp>
#include <chokepoint/trace/columns.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::trace {

enum class Format {
  kUnknown,
  kChromeTrace,     ///< Kineto and other Chrome JSON
  kOpTimeline,      ///< one row per operation of a worker (CSV or Chrome array with step and micro-batch)
  kNsightSqlite,
  kFlightRecorder,  ///< NCCL flight recorder, pickle or JSON
  kExecutionGraph,  ///< PyTorch or Chakra execution graph: no times
  kTrainerLog,
  kChakra,          ///< Chakra execution trace (protobuf), with durations
};
std::string_view name(Format format);

/// Format from the first bytes (after decompression) of a file.
Format recognise(std::string_view head);
Result<Format> recognise_file(const std::string& path);

/// A Chrome trace (object with traceEvents, or a bare array), plain, gzip or zstd.
Result<RankTrace> read_chrome_trace(const std::string& path);
/// The same from memory; `file` names it in messages.
Result<RankTrace> read_chrome_text(std::string_view text, const std::string& file);

/// The same, but where the file holds several ranks (processes named "rank N", or processes that each launch onto a device of
/// their own) one trace for each.
Result<std::vector<RankTrace>> read_chrome_ranks(const std::string& path);
Result<std::vector<RankTrace>> read_chrome_ranks_text(std::string_view text, const std::string& file);

/// The traces of a file of any format that holds device work with times.
Result<std::vector<RankTrace>> read_traces(const std::string& path);

/// An Nsight Systems SQLite export: one trace per process and device.
Result<std::vector<RankTrace>> read_nsight(const std::string& path);

/// A Chakra execution trace, plain or compressed: nodes at their times, else placed as their dependencies allow. An error
/// where no node has a duration.
Result<RankTrace> read_chakra(const std::string& path);
Result<RankTrace> read_chakra_text(std::string text, const std::string& file);
/// Whether a file that begins so may be one.
bool looks_like_chakra(std::string_view head);

/// Which device work a kernel name stands for, and the collective it says ("AllReduce", ... or "").
Work classify_kernel(std::string_view kernel);
std::string_view collective_of_kernel(std::string_view kernel);

}  // namespace chokepoint::trace
