// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/service/answer.hpp>

#include <algorithm>
#include <array>
#include <chokepoint/base/text.hpp>
#include <chokepoint/commands/run.hpp>
#include <nlohmann/json.hpp>

#include "assets.hpp"
#include "request.hpp"

namespace chokepoint::service {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 11> kCommands{"predict",   "plan",     "whatif", "wiring",   "diagnose",    "export",
                                                     "calibrate", "validate", "models", "clusters", "accelerators"};
constexpr std::string_view kCatalogue = "catalogue";

Answer failed(const Error& error, int code) { return {error_json(error), code, error}; }

/// Text is what JSON can hold as it is: UTF-8.
bool is_text(const std::string& content) {
  try {
    return !Json(content).dump().empty() && content.find('\0') == std::string::npos;
  } catch (const Json::type_error&) {
    return false;
  }
}

/// The command's JSON with the files that it wrote beside it, before the last brace.
std::string with_files(std::string json, const MemoryFiles& files) {
  Json written = Json::object();
  for (const auto& [name, content] : files.written()) {
    if (name == "-") continue;
    if (is_text(content)) written[name] = content;
    else written[name] = {{"base64", to_base64(content)}};
  }
  const std::size_t end = json.rfind('}');
  if (written.empty() || end == std::string::npos) return json;
  json.insert(end, ",\"written\":" + written.dump());
  return json;
}

Answer run(std::string_view operation, std::string_view text, Disk disk) {
  Result<Request> request = read_request(operation, text, disk);
  if (!request) return failed(request.error(), 2);
  const commands::Ended outcome = commands::run_in_memory(request->words, request->files);
  if (outcome.error) return failed(*outcome.error, outcome.code == 0 ? 3 : outcome.code);
  const auto printed = request->files.written().find("-");
  if (printed == request->files.written().end()) return failed({"internal error: no result", {}, {"please report it with the request"}}, 3);
  return {with_files(printed->second, request->files), outcome.code, std::nullopt};
}

/// The examples that a text names, as "../FOLDER/NAME", and those that these name.
void add_named(std::string_view text, Json& files) {
  for (const Asset& example : embedded::examples) {
    const std::string name = "../" + std::string(example.name);
    if (text.find(name) == std::string_view::npos || files.contains(name)) continue;
    files[name] = example.content;
    add_named(example.content, files);
  }
}

/// Each job of the examples as a request, with all the files it needs.
Json examples() {
  constexpr std::string_view kFolder = "jobs/";
  constexpr std::string_view kEnd = ".yaml";
  Json list = Json::array();
  for (const Asset& example : embedded::examples) {
    if (!example.name.starts_with(kFolder) || !example.name.ends_with(kEnd)) continue;
    Json files = Json::object();
    add_named(example.content, files);
    const std::string_view name = example.name.substr(kFolder.size(), example.name.size() - kFolder.size() - kEnd.size());
    list.push_back({{"name", name}, {"request", {{"job", example.content}, {"files", files}}}});
  }
  return list;
}

/// All that a form can offer, in one answer.
Answer catalogue() {
  std::string json = "{";
  for (const std::string_view part : {"models", "clusters", "accelerators"}) {
    const Answer one = run(part, "", Disk::kClosed);
    if (one.error) return one;
    json += (json.size() > 1 ? "," : "") + ("\"" + std::string(part) + "\":") + one.json;
  }
  return {json + ",\"examples\":" + examples().dump() + "}\n", 0, std::nullopt};
}

}  // namespace

std::vector<std::string> operations() {
  std::vector<std::string> all(kCommands.begin(), kCommands.end());
  all.emplace_back(kCatalogue);
  return all;
}

Answer answer(std::string_view operation, std::string_view request, Disk disk) {
  if (operation == kCatalogue) return catalogue();
  if (std::find(kCommands.begin(), kCommands.end(), operation) != kCommands.end()) return run(operation, request, disk);
  Error error{"unknown operation '" + std::string(operation) + "'", {}, {}};
  if (const auto near = nearest(std::string(operation), operations())) error.notes.push_back("did you mean '" + *near + "'?");
  return failed(error, 2);
}

std::string error_json(const Error& error) {
  Json json{{"message", error.message}};
  json["file"] = error.pos.file.empty() ? Json(nullptr) : Json(error.pos.file);
  json["line"] = error.pos.line > 0 ? Json(error.pos.line) : Json(nullptr);
  json["column"] = error.pos.column > 0 ? Json(error.pos.column) : Json(nullptr);
  constexpr std::string_view kExpected = "expected ";
  const std::size_t at = error.message.find(kExpected);
  json["expected"] = at == std::string::npos ? Json(nullptr) : Json(error.message.substr(at + kExpected.size()));
  std::string fix;
  for (const std::string& note : error.notes) fix += (fix.empty() ? "" : "\n") + note;
  json["fix"] = fix.empty() ? Json(nullptr) : Json(fix);
  return Json{{"error", json}}.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace chokepoint::service
