// SPDX-License-Identifier: Apache-2.0
#pragma once
// Requests in JSON, answers in JSON: what the HTTP server and the Python bindings call. docs/formats/api.md describes both.
//
//   answer("predict", R"({"job": {"model": "llama-3-8b", "cluster": "dgx-h100", "batch": 256, "sequence": 4096},
//                         "options": {"strategy": "zero=1 microbatch=1"}})")
//
// A request holds "job" (a mapping, the text of a job file, or the name of one in "files"), "inputs" (names of files to
// read: wiring, diagnose, validate, calibrate), "files" (name: text, or name: {"base64": ...}) and "options" (the long
// options of the command line). The answer is what the command prints with --json; what options such as "html" make it
// write stands beside it in "written".
#include <chokepoint/base/memory_files.hpp>
#include <chokepoint/base/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::service {

struct Answer {
  std::string json;            ///< the result, or {"error": {...}}
  int code = 0;                ///< as the command line's exit codes: 0 ok, 1 negative verdict, 2 bad input, 3 internal, 4 partial
  std::optional<Error> error;  ///< with codes 2 and 3
};

/// predict, plan, whatif, wiring, diagnose, export, calibrate, validate, models, clusters, accelerators, catalogue.
std::vector<std::string> operations();

/// With Disk::kClosed names of files mean those of the request and nothing else. With Disk::kOpen (a caller's own process)
/// names that the request does not hold are looked for on disk, and files are written there.
/// Depends on nothing but its arguments, changes nothing, and may be called from any number of threads.
Answer answer(std::string_view operation, std::string_view request, Disk disk = Disk::kClosed);

/// {"error": {"message", "file", "line", "column", "expected", "fix"}}: `expected` is what the message says
/// after "expected", `fix` the notes, a line each; null what is not known.
std::string error_json(const Error& error);

}  // namespace chokepoint::service
