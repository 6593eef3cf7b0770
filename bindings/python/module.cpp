// SPDX-License-Identifier: Apache-2.0
// The compiled part of the Python package: one function, the same that the HTTP service calls. Everything else is Python.
#include <chokepoint/service/answer.hpp>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <string>
#include <utility>

namespace py = pybind11;

namespace {

/// The JSON of the answer and its code. Python may run other threads meanwhile: an answer depends on its arguments alone.
std::pair<std::string, int> answer(const std::string& operation, const std::string& request, bool open_disk) {
  const py::gil_scoped_release other_threads;
  chokepoint::service::Answer result = chokepoint::service::answer(
      operation, request, open_disk ? chokepoint::Disk::kOpen : chokepoint::Disk::kClosed);
  return {std::move(result.json), result.code};
}

}  // namespace

PYBIND11_MODULE(_chokepoint, module) {
  module.doc() = "Requests in JSON, answers in JSON (docs/formats/api.md).";
  module.attr("__version__") = CHOKEPOINT_VERSION;
  module.def("answer", &answer, py::arg("operation"), py::arg("request"), py::arg("open_disk") = true,
             "Answers a request: (JSON text, code). Codes are those of the command line.");
  module.def("operations", &chokepoint::service::operations, "Names that answer() knows.");
}
