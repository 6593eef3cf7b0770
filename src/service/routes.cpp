// SPDX-License-Identifier: Apache-2.0
#include "routes.hpp"

#include <algorithm>
#include <chokepoint/commands/run.hpp>
#include <chokepoint/report/simulate_view.hpp>
#include <chokepoint/service/answer.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "assets.hpp"
#include "openapi.hpp"
#include "scan.hpp"

namespace chokepoint::service {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kApi = "/api/v1/";
constexpr std::string_view kAssets = "/assets/";
constexpr std::size_t kLongestQueue = 256;
constexpr std::size_t kWorthCompressing_bytes = 1024;

/// Only our own scripts run, pictures carry styles of their own; nothing is loaded from, sent to, or framed by another site.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; "
    "frame-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// 64-bit FNV-1a: tells versions of a file apart, nothing else hangs on it.
std::string fingerprint(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  char out[24];
  std::snprintf(out, sizeof out, "\"%016llx\"", static_cast<unsigned long long>(hash));
  return out;
}

Reply method_refused(const std::string& allowed) {
  Reply reply = error_reply(405, "this address takes " + allowed);
  reply.headers.emplace_back("Allow", allowed);
  return reply;
}

/// An answer of a command, by its exit code.
Reply of_answer(int code, std::string json) {
  const int status = code == 2 ? 400 : code == 3 ? 500 : 200;
  return {status, "application/json", std::move(json), {{"Chokepoint-Code", std::to_string(code)}}};
}

Reply of_ended(Ended ended, double timeout_s) {
  if (ended.how == Ended::How::kAnswered) return of_answer(ended.code, std::move(ended.json));
  return error_reply(ended.how == Ended::How::kTimedOut ? 504 : 500, failure_of(ended.how, timeout_s));
}

bool is_get(const HttpRequest& request) { return request.method == "GET" || request.method == "HEAD"; }

Reply busy() {
  Reply reply = error_reply(503, "the server has too many requests waiting", "try again in a moment");
  reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

Json head_json(const StudyHead& head) {
  return {{"id", head.id},           {"name", head.name},           {"revision", head.revision},
          {"created_s", head.created_s}, {"changed_s", head.changed_s}, {"size_bytes", head.size_bytes}};
}

struct StudyBody {
  std::string name;
  std::string document;
  std::optional<std::int64_t> revision;
};

Result<StudyBody> read_study(const std::string& body) {
  if (const auto deep = nested_too_deep(body)) return fail("nested deeper than 64 levels", *deep);
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return fail("the body is no JSON object, expected {\"name\": \"...\", \"document\": {...}}");
  if (!json.contains("name") || !json["name"].is_string()) return fail("'name' is missing, expected a text");
  if (!json.contains("document")) return fail("'document' is missing, expected any JSON value");
  StudyBody study{json["name"].get<std::string>(), json["document"].dump(), std::nullopt};
  if (json.contains("revision") && !json["revision"].is_null()) {
    if (!json["revision"].is_number_integer()) return fail("'revision' must be a whole number, as the last answer gave it");
    study.revision = json["revision"].get<std::int64_t>();
  }
  return study;
}

Reply json_reply(int status, const Json& json) { return {status, "application/json", json.dump() + "\n", {}}; }

/// Ours alone, or the disk's: what a client sent is 400, what failed here 500, what another program holds up 503.
Reply storage_failed(const Error& error) {
  if (error.message == Studies::kLocked) {
    Reply reply = error_reply(503, error);
    reply.headers.emplace_back("Retry-After", "1");
    return reply;
  }
  const bool ours = error.message.rfind("studies: ", 0) == 0;
  return error_reply(ours ? 500 : 400, error);
}

}  // namespace

Reply error_reply(int status, const Error& error) { return {status, "application/json", error_json(error), {}}; }
Reply error_reply(int status, const std::string& message, const std::string& fix) {
  Error error{message, {}, {}};
  if (!fix.empty()) error.notes.push_back(fix);
  return error_reply(status, error);
}

Routes::Routes(boost::asio::io_context& io, const ServeOptions& options, const Spawn& spawn, Studies studies)
    : options_(options),
      pool_(io, spawn, static_cast<std::size_t>(options.workers), kLongestQueue),
      tasks_(io, spawn, static_cast<std::size_t>(options.task_workers), options.task_timeout_s, new_instance()),
      studies_(std::move(studies)) {}

std::uint64_t Routes::handle(HttpRequest request, Send send) {
  const std::string path = request.path;
  if (path.rfind(kApi, 0) != 0) {
    send(page(request));
    return 0;
  }
  const std::string rest = path.substr(kApi.size());
  const std::string first = rest.substr(0, rest.find('/'));
  const std::string second = first.size() < rest.size() ? rest.substr(first.size() + 1) : "";
  const std::vector<std::string> known = operations();
  if (rest == "catalogue" && is_get(request)) {
    if (!catalogue_.empty()) {
      send(of_answer(0, catalogue_));
      return 0;
    }
    return compute("catalogue", std::move(request), [this, send = std::move(send)](Reply reply) {
      if (reply.status == 200) catalogue_ = reply.body;
      send(std::move(reply));
    });
  }
  if (std::find(known.begin(), known.end(), rest) != known.end()) {
    if (request.method != "POST") {
      send(method_refused(rest == "catalogue" ? "GET" : "POST"));
      return 0;
    }
    if (wants_async(request.body)) {
      send(start_task(rest, std::move(request)));
      return 0;
    }
    return compute(rest, std::move(request), std::move(send));
  }
  if (rest == "status" || rest == "openapi.json") {
    if (!is_get(request)) send(method_refused("GET"));
    else send(rest == "status" ? status() : Reply{200, "application/json", openapi_json(), {}});
  } else if (first == "studies") {
    send(second.empty() ? studies(request) : study(request, second));
  } else if (first == "tasks" && !second.empty()) {
    send(task(request, second));
  } else {
    send(error_reply(404, "there is no " + path.substr(0, 200), "/api/v1/openapi.json lists what there is"));
  }
  return 0;
}

std::uint64_t Routes::compute(const std::string& operation, HttpRequest request, Send send) {
  const double timeout_s = options_.timeout_s;
  auto reply = std::make_shared<Send>(std::move(send));
  PoolJob job{operation, std::move(request.body), timeout_s, {}, {}, {}};
  job.done = [reply, timeout_s](Ended ended) { (*reply)(of_ended(std::move(ended), timeout_s)); };
  const std::uint64_t ticket = pool_.submit(std::move(job));
  if (ticket == 0) (*reply)(busy());
  return ticket;
}

Reply Routes::start_task(const std::string& operation, HttpRequest request) {
  const std::optional<std::string> id = tasks_.start(operation, std::move(request.body));
  if (!id) return busy();
  Reply reply = json_reply(202, {{"task", *id}});
  reply.headers.emplace_back("Location", std::string(kApi) + "tasks/" + *id);
  return reply;
}

Reply Routes::page(const HttpRequest& request) {
  if (!is_get(request)) return method_refused("GET");
  const bool root = request.path == "/";
  const std::string name = root ? "index.html" : request.path.rfind(kAssets, 0) == 0 ? request.path.substr(kAssets.size()) : "";
  const Asset* asset = find_asset(name);
  if (asset == nullptr) return error_reply(404, "there is no " + request.path.substr(0, 200));
  Reply reply{200, std::string(type_of_asset(name)), {}, {{"Content-Security-Policy", std::string(kPolicy)}}};
  const std::string tag = fingerprint(asset->content);
  reply.headers.emplace_back("ETag", tag);
  if (request.if_none_match == tag) {
    reply.status = 304;
    return reply;
  }
  reply.headers.emplace_back("Vary", "Accept-Encoding");
  if (request.takes_gzip && asset->content.size() >= kWorthCompressing_bytes) {
    std::string& small = compressed_[name];
    if (small.empty()) small = report::gzipped(std::string(asset->content));
    reply.body = small;
    reply.headers.emplace_back("Content-Encoding", "gzip");
  } else {
    reply.body = asset->content;
  }
  return reply;
}

Reply Routes::status() const {
  return json_reply(200, {{"version", commands::version()}, {"instance", tasks_.instance()}, {"waiting", pool_.waiting()}});
}

Reply Routes::studies(const HttpRequest& request) {
  if (is_get(request)) {
    const Result<std::vector<StudyHead>> heads = studies_.list();
    if (!heads) return storage_failed(heads.error());
    Json list = Json::array();
    for (const StudyHead& head : *heads) list.push_back(head_json(head));
    return json_reply(200, {{"studies", list}});
  }
  if (request.method != "POST") return method_refused("GET, POST");
  const Result<StudyBody> body = read_study(request.body);
  if (!body) return error_reply(400, body.error());
  const Result<StudyHead> head = studies_.add(body->name, body->document);
  if (!head) return storage_failed(head.error());
  Reply reply = json_reply(201, head_json(*head));
  reply.headers.emplace_back("Location", std::string(kApi) + "studies/" + head->id);
  return reply;
}

Reply Routes::study(const HttpRequest& request, const std::string& id) {
  const Reply missing = error_reply(404, "there is no such study", "it may have been deleted; save it anew");
  if (is_get(request)) {
    const auto found = studies_.find(id);
    if (!found) return storage_failed(found.error());
    if (!*found) return missing;
    std::string text = head_json((*found)->head).dump();
    text.pop_back();
    return {200, "application/json", text + ",\"document\":" + (*found)->document + "}\n", {}};
  }
  if (request.method == "DELETE") {
    const Result<bool> removed = studies_.remove(id);
    if (!removed) return storage_failed(removed.error());
    return *removed ? Reply{204, "", "", {}} : missing;
  }
  if (request.method != "PUT") return method_refused("GET, PUT, DELETE");
  const Result<StudyBody> body = read_study(request.body);
  if (!body) return error_reply(400, body.error());
  const Result<Studies::Changed> changed = studies_.replace(id, body->name, body->document, body->revision);
  if (!changed) return storage_failed(changed.error());
  if (changed->change == Studies::Change::kMissing) return missing;
  if (changed->change == Studies::Change::kConflict) {
    return error_reply(409, "this study was changed elsewhere: it is at revision " + std::to_string(changed->head.revision), "open it again, or save under another name");
  }
  return json_reply(200, head_json(changed->head));
}

Reply Routes::task(const HttpRequest& request, const std::string& id) {
  const Reply missing = error_reply(404, "this server has no such task", "it was started before the server was, or ended long ago; send the request again");
  if (is_get(request)) {
    const std::optional<std::string> json = tasks_.json(id);
    return json ? Reply{200, "application/json", *json, {}} : missing;
  }
  if (request.method != "DELETE") return method_refused("GET, DELETE");
  return tasks_.remove(id) ? Reply{204, "", "", {}} : missing;
}

}  // namespace chokepoint::service
