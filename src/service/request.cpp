// SPDX-License-Identifier: Apache-2.0
#include "request.hpp"

#include <algorithm>
#include <array>
#include <chokepoint/base/files.hpp>
#include <chokepoint/base/text.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "scan.hpp"

namespace chokepoint::service {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostFiles = 4096;
constexpr std::string_view kJobName = "job.yaml";
/// Options that say where a result goes, which is the caller's, or print something else than a result.
constexpr std::array<std::string_view, 7> kNotInRequests{"json", "out", "help", "version", "quiet", "job", "inputs"};

Result<Json> parsed(std::string_view text) {
  if (text.empty()) return Json::object();
  if (const auto deep = nested_too_deep(text)) return fail("nested deeper than 64 levels", *deep);
  try {
    Json json = Json::parse(text);
    if (!json.is_object()) return fail("the request is no JSON object, expected {\"job\": ..., \"options\": {...}}", {"request", 1, 1});
    return json;
  } catch (const Json::parse_error& error) {
    return fail("the request is no valid JSON", place_of(text, error.byte), {"send a JSON object in UTF-8, for example {\"job\": {...}, \"options\": {...}}"});
  } catch (const Json::exception&) {
    return fail("the request holds a number beyond the range of a double", {"request", 0, 0});
  }
}

Result<bool> add_files(const Json& files, MemoryFiles& into) {
  if (!files.is_object()) return fail("'files' must be an object of names and contents");
  if (files.size() > kMostFiles) return fail("more than 4096 files in one request");
  for (const auto& [name, content] : files.items()) {
    if (name.empty() || name.size() > 1024 || name.find('\0') != std::string::npos) return fail("a file's name must have 1 to 1024 characters");
    if (content.is_string()) {
      into.add(name, content.get<std::string>());
      continue;
    }
    std::optional<std::string> bytes;
    if (content.is_object() && content.size() == 1 && content.contains("base64") && content["base64"].is_string()) {
      bytes = from_base64(content["base64"].get_ref<const std::string&>());
    }
    if (!bytes) return fail("'files." + name + "' must be a text or {\"base64\": \"...\"}", {name, 0, 0});
    into.add(name, std::move(*bytes));
  }
  return true;
}

/// 256.0 is written as 256: JSON does not tell whole numbers from others, the command line does.
std::string number_text(const Json& value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::abs(number) < kExact && std::floor(number) == number) return std::to_string(static_cast<long long>(number));
  }
  return value.dump();
}

/// {"tensor": 8, "zero": 1} as "tensor=8 zero=1".
Result<std::string> words_of(const std::string& option, const Json& value) {
  std::string text;
  for (const auto& [key, item] : value.items()) {
    if (item.is_null()) continue;
    if (item.is_object() || item.is_array()) return fail("'" + option + "." + key + "' must be a text or a number");
    const std::string word = item.is_string() ? item.get<std::string>() : item.is_number() ? number_text(item) : item.dump();
    text += (text.empty() ? "" : " ") + key + "=" + word;
  }
  return text;
}

/// A mapping as the text of a job file: a key a line, so that positions in messages count keys.
Result<std::string> job_text(const Json& job) {
  std::string text;
  for (const auto& [key, value] : job.items()) {
    if (value.is_null()) continue;
    const bool words = key == "strategy" && value.is_object();
    TRY_INTO(const std::string strategy, words ? words_of("job.strategy", value) : Result<std::string>(""));
    text += Json(key).dump() + ": " + (words ? Json(strategy).dump() : value.dump()) + "\n";
  }
  return text;
}

/// Name of the job's file, which is put among the files where it came as a value.
Result<std::string> job_name(const Json& job, MemoryFiles& files) {
  std::string text;
  if (job.is_object()) {
    TRY_INTO(text, job_text(job));
  } else if (job.is_string()) {
    text = job.get<std::string>();
    const bool one_word = !text.empty() && text.find('\n') == std::string::npos && text.find(": ") == std::string::npos;
    if (one_word && (files.find(text) != nullptr || (files.disk_open() && file_exists(text)))) return text;
  } else {
    return fail("'job' must be a mapping, the text of a job file, or the name of one in 'files'");
  }
  std::string name(kJobName);
  while (files.find(name) != nullptr) name = "the-" + name;
  files.add(name, std::move(text));
  return name;
}

Result<bool> add_option(const std::string& name, const Json& value, std::vector<std::string>& words) {
  const std::string option = "--" + name;
  if (value.is_null()) return true;
  if (value.is_array()) {
    for (const Json& item : value) {
      if (item.is_array()) return fail("'options." + name + "' must be a text, a number, true or false, or a list of these");
      TRY_INTO([[maybe_unused]] const bool added, add_option(name, item, words));
    }
    return true;
  }
  if (value.is_boolean()) {
    words.push_back(value.get<bool>() ? option : option + "=false");
    return true;
  }
  std::string text;
  if (value.is_object()) {
    TRY_INTO(text, words_of("options." + name, value));
  } else {
    text = value.is_string() ? value.get<std::string>() : number_text(value);
  }
  if (text.empty()) return fail("'options." + name + "' is empty", {}, {"leave it out"});
  if (text.find('\0') != std::string::npos) return fail("'options." + name + "' holds a zero byte");
  words.push_back(option + "=" + text);
  return true;
}

Result<bool> add_options(const Json& options, std::vector<std::string>& words) {
  if (!options.is_object()) return fail("'options' must be an object: the long options of the command line");
  for (const auto& [key, value] : options.items()) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', '-');
    const bool plain = !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    });
    if (!plain) return fail("'" + key + "' is no name of an option", {}, {"options are written as on the command line, without the dashes"});
    if (std::find(kNotInRequests.begin(), kNotInRequests.end(), name) != kNotInRequests.end()) return fail("'" + key + "' is no option of a request");
    TRY_INTO([[maybe_unused]] const bool added, add_option(name, value, words));
  }
  return true;
}

/// What a command reads beside its job.
bool reads_inputs(std::string_view operation) {
  return operation == "wiring" || operation == "diagnose" || operation == "calibrate" || operation == "validate";
}

Result<std::vector<std::string>> input_names(const Json& request, const MemoryFiles& files) {
  if (!request.contains("inputs")) return files.names();
  const Json& inputs = request["inputs"];
  if (inputs.is_string()) return std::vector<std::string>{inputs.get<std::string>()};
  std::vector<std::string> names;
  for (const Json& name : inputs) {
    if (!inputs.is_array() || !name.is_string()) return fail("'inputs' must be a name or a list of names");
    names.push_back(name.get<std::string>());
  }
  return names;
}

Result<bool> check_keys(const Json& request, std::string_view operation) {
  std::vector<std::string> known{"job", "files", "options", "async"};  // async is for the server that passes it on
  if (reads_inputs(operation)) known.emplace_back("inputs");
  for (const auto& [key, value] : request.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    Error error{"unknown key '" + key + "' in the request", {"request", 0, 0}, {}};
    if (const auto near = nearest(key, known)) error.notes.push_back("did you mean '" + *near + "'?");
    error.notes.push_back("options of the command line stand under 'options'");
    return tl::make_unexpected(std::move(error));
  }
  return true;
}

}  // namespace

Result<Request> read_request(std::string_view operation, std::string_view text, Disk disk) {
  TRY_INTO(const Json json, parsed(text));
  TRY_INTO([[maybe_unused]] const bool known, check_keys(json, operation));
  Request request;
  request.files = MemoryFiles(disk);
  if (json.contains("files")) {
    TRY_INTO([[maybe_unused]] const bool added, add_files(json["files"], request.files));
  }
  request.words = {std::string(operation), "--json"};
  std::vector<std::string> inputs;
  if (reads_inputs(operation)) {
    TRY_INTO(inputs, input_names(json, request.files));
  }
  if (json.contains("job") && !json["job"].is_null()) {
    TRY_INTO(const std::string name, job_name(json["job"], request.files));
    if (reads_inputs(operation)) {
      std::erase(inputs, name);
      request.words.push_back("--job=" + name);
    } else {
      inputs.push_back(name);
    }
  }
  if (json.contains("options")) {
    TRY_INTO([[maybe_unused]] const bool options, add_options(json["options"], request.words));
  }
  if (!inputs.empty()) request.words.emplace_back("--");  // names that begin with a dash are names
  request.words.insert(request.words.end(), inputs.begin(), inputs.end());
  return request;
}

}  // namespace chokepoint::service
