// SPDX-License-Identifier: Apache-2.0
#include "openapi.hpp"

#include <chokepoint/commands/run.hpp>
#include <chokepoint/service/answer.hpp>
#include <nlohmann/json.hpp>
#include <vector>

namespace chokepoint::service {
namespace {

using Json = nlohmann::ordered_json;

struct Operation {
  const char* name;
  const char* summary;
  bool inputs;                        ///< reads files beside a job
  std::vector<const char*> required;  ///< keys that every answer has; docs/formats/json.md describes them
};

const std::vector<Operation>& posts() {
  static const std::vector<Operation> all{
      {"predict", "One strategy: step time, bill, efficiency ladder, memory, choke point", false, {"schema", "step_time_s", "bill", "memory", "choke_point", "assumptions"}},
      {"plan", "Strategies on this wiring, best first", false, {"schema", "candidates", "space", "optimal"}},
      {"whatif", "What changes are worth: step time, tokens, money; sensitivities, scaling, break-even", false, {"schema"}},
      {"wiring", "A cluster from its tools' output: hosts, fabric, findings, expected collectives", true, {"hosts", "fabric", "findings"}},
      {"diagnose", "Traces, recorder dumps, timelines or logs of a job: where time goes, and why", true, {"schema"}},
      {"export", "Settings of a training framework for a job", false, {}},
      {"calibrate", "Measured tables, traces and step times as parameters", true, {}},
      {"validate", "Published or own measurements against predictions", true, {"schema"}},
      {"models", "Catalogue of models", false, {"models"}},
      {"clusters", "Catalogue of hosts, fabrics and NICs", false, {"hosts", "fabrics", "nics"}},
      {"accelerators", "Catalogue of accelerators", false, {"accelerators"}},
  };
  return all;
}

Json reference(const std::string& name) { return {{"$ref", "#/components/schemas/" + name}}; }
Json content(Json schema) { return {{"application/json", {{"schema", std::move(schema)}}}}; }
Json text_schema() { return {{"type", "string"}}; }
Json object_of(Json properties, const std::vector<const char*>& required) {
  return {{"type", "object"}, {"required", required}, {"properties", std::move(properties)}};
}
Json response(const char* what, Json schema) { return {{"description", what}, {"content", content(std::move(schema))}}; }

Json option_schema(const commands::OptionInfo& option) {
  Json schema;
  switch (option.takes) {
    case commands::Takes::kNothing: schema["type"] = "boolean"; break;
    case commands::Takes::kNumber: schema["type"] = "number"; break;
    case commands::Takes::kWholeNumber: schema["type"] = "integer"; break;
    case commands::Takes::kText: schema["type"] = {"string", "object", "number"}; break;
  }
  if (option.repeats) schema = {{"anyOf", {schema, {{"type", "array"}, {"items", schema}}}}};
  schema["description"] = option.what;
  return schema;
}

Json options_schema(const std::string& command) {
  Json properties = Json::object();
  for (const commands::OptionInfo& option : commands::options_of(command)) {
    const bool callers = option.name == "json" || option.name == "out" || option.name == "help" || option.name == "quiet" || option.name == "job";
    if (!callers) properties[option.name] = option_schema(option);
  }
  return {{"type", "object"}, {"description", "the long options of the command line"}, {"properties", std::move(properties)}};
}

Json request_schema(const Operation& operation) {
  Json properties{{"job", reference("Job")}};
  if (operation.inputs) {
    properties["inputs"] = {{"description", "names of files to read, or a catalogue name; all files by default"}, {"type", {"string", "array"}}, {"items", text_schema()}};
  }
  properties["files"] = reference("Files");
  properties["options"] = options_schema(operation.name);
  properties["async"] = {{"type", "boolean"}, {"description", "answer at once with a task that works on it"}};
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
}

void add_errors(Json& responses, std::initializer_list<std::pair<const char*, const char*>> errors) {
  for (const auto& [status, what] : errors) responses[status] = response(what, reference("Failure"));
}

Json post_operation(const Operation& operation) {
  Json result{{"type", "object"}, {"required", operation.required}};
  Json responses{{"200", response("as the command line prints with --json", result)}, {"202", response("the task that works on it", reference("Started"))}};
  add_errors(responses, {{"400", "bad input: what was found, where, and how to mend it"}, {"403", "a foreign host or origin"},
                         {"413", "larger than this server takes"}, {"415", "not marked as JSON"}, {"500", "internal error"},
                         {"503", "too many requests waiting"}, {"504", "took too long"}});
  return {{"operationId", operation.name}, {"summary", operation.summary},
          {"requestBody", {{"required", true}, {"content", content(request_schema(operation))}}}, {"responses", responses}};
}

Json get_operation(const char* id, const char* summary, Json schema) {
  return {{"operationId", id}, {"summary", summary}, {"responses", {{"200", response(summary, std::move(schema))}}}};
}

Json with_body(Json operation) {
  operation["requestBody"] = {{"required", true}, {"content", content(reference("StudyBody"))}};
  return operation;
}

Json parameter(const char* name) {
  return Json::array({{{"name", name}, {"in", "path"}, {"required", true}, {"schema", text_schema()}}});
}

void add_studies(Json& paths) {
  const Json list = object_of({{"studies", {{"type", "array"}, {"items", reference("StudyHead")}}}}, {"studies"});
  Json add = with_body(get_operation("addStudy", "Saves a study", reference("StudyHead")));
  add["responses"]["201"] = add["responses"]["200"];
  add["responses"].erase("200");
  add_errors(add["responses"], {{"400", "bad input"}, {"503", "another program holds the file of studies"}});
  paths["/api/v1/studies"] = {{"get", get_operation("listStudies", "Saved studies, newest first", list)}, {"post", add}};
  Json one{{"parameters", parameter("id")}, {"get", get_operation("getStudy", "A study and its document", reference("Study"))},
           {"put", with_body(get_operation("replaceStudy", "Replaces a study", reference("StudyHead")))},
           {"delete", {{"operationId", "deleteStudy"}, {"summary", "Deletes a study"}, {"responses", {{"204", {{"description", "deleted"}}}}}}}};
  for (const char* method : {"get", "put", "delete"}) add_errors(one[method]["responses"], {{"404", "no such study"}, {"503", "another program holds the file of studies"}});
  add_errors(one["put"]["responses"], {{"409", "changed elsewhere since 'revision'"}});
  paths["/api/v1/studies/{id}"] = one;
}

void add_tasks(Json& paths) {
  Json one{{"parameters", parameter("id")}, {"get", get_operation("getTask", "A task: its state, then its result", reference("Task"))},
           {"delete", {{"operationId", "cancelTask"}, {"summary", "Cancels a task; forgets one that has ended"}, {"responses", {{"204", {{"description", "done"}}}}}}}};
  for (const char* method : {"get", "delete"}) add_errors(one[method]["responses"], {{"404", "no such task: ended long ago, or started before this server was"}});
  paths["/api/v1/tasks/{id}"] = one;
}

Json schemas() {
  const Json number{{"type", "number"}};
  const Json whole{{"type", "integer"}};
  const Json maybe_text{{"type", {"string", "null"}}};
  const Json maybe_whole{{"type", {"integer", "null"}}};
  Json head{{"id", text_schema()}, {"name", text_schema()}, {"revision", whole}, {"created_s", whole}, {"changed_s", whole}, {"size_bytes", whole}};
  Json study = head;
  study["document"] = Json::object();
  const std::vector<const char*> head_keys{"id", "name", "revision", "created_s", "changed_s", "size_bytes"};
  std::vector<const char*> study_keys = head_keys;
  study_keys.push_back("document");
  const Json failure = object_of({{"message", text_schema()}, {"file", maybe_text}, {"line", maybe_whole}, {"column", maybe_whole}, {"expected", maybe_text}, {"fix", maybe_text}},
                                 {"message", "file", "line", "column", "expected", "fix"});
  const Json file{{"oneOf", {text_schema(), object_of({{"base64", text_schema()}}, {"base64"})}}};
  return {
      {"Job", {{"description", "keys of a job file, the text of one (or of a framework's config), or the name of one in 'files'"}, {"type", {"object", "string"}}}},
      {"Files", {{"type", "object"}, {"description", "contents by name; other files of the request find them under these names"}, {"additionalProperties", file}}},
      {"Failure", object_of({{"error", failure}}, {"error"})},
      {"Started", object_of({{"task", text_schema()}}, {"task"})},
      {"StudyHead", object_of(head, head_keys)},
      {"Study", object_of(study, study_keys)},
      {"StudyBody", object_of({{"name", text_schema()}, {"document", Json::object()}, {"revision", whole}}, {"name", "document"})},
      {"Task", object_of({{"task", text_schema()}, {"operation", text_schema()}, {"state", {{"enum", {"queued", "running", "done", "failed", "cancelled"}}}},
                          {"progress", {{"type", {"number", "null"}}}}, {"elapsed_s", number}, {"code", whole}, {"result", {{"type", "object"}}}, {"error", failure}},
                         {"task", "operation", "state", "progress", "elapsed_s"})},
      {"Status", object_of({{"version", text_schema()}, {"instance", text_schema()}, {"waiting", whole}}, {"version", "instance", "waiting"})},
      {"Catalogue", object_of({{"models", {{"type", "object"}}}, {"clusters", {{"type", "object"}}}, {"accelerators", {{"type", "object"}}}, {"examples", {{"type", "array"}}}}, {"models", "clusters", "accelerators", "examples"})},
  };
}

}  // namespace

const std::string& openapi_json() {
  static const std::string text = [] {
    Json paths = Json::object();
    for (const Operation& operation : posts()) paths[std::string("/api/v1/") + operation.name] = {{"post", post_operation(operation)}};
    paths["/api/v1/catalogue"] = {{"get", get_operation("catalogue", "Models, accelerators, hosts, fabrics, NICs and example jobs", reference("Catalogue"))}};
    add_tasks(paths);
    add_studies(paths);
    paths["/api/v1/status"] = {{"get", get_operation("status", "Which server this is", reference("Status"))}};
    paths["/api/v1/openapi.json"] = {{"get", get_operation("openapi", "This document", {{"type", "object"}})}};
    const Json document{{"openapi", "3.1.0"},
                        {"info", {{"title", "Chokepoint"}, {"version", commands::version()}, {"description", "What holds a training cluster back, worked out for one job on one wiring. docs/formats/api.md and docs/formats/json.md describe requests and answers."}, {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}},
                        {"paths", paths}, {"components", {{"schemas", schemas()}}}};
    return document.dump(1) + "\n";
  }();
  return text;
}

}  // namespace chokepoint::service
