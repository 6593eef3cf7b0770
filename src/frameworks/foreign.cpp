// SPDX-License-Identifier: Apache-2.0
// Files that are not what their name says: the usual accidents of downloads, copies and wrong arguments, each with its
// remedy. Asked only where no format was recognised, so a line here never refuses what could be read.
#include <chokepoint/base/text.hpp>
#include <chokepoint/frameworks/not_settings.hpp>

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "settings.hpp"

namespace chokepoint::frameworks {

namespace {

struct Kind {
  std::string_view beginning;
  std::string_view what;
  std::string_view fix;
};

using namespace std::string_view_literals;

constexpr std::array kKinds = {
    Kind{"version https://git-lfs", "a Git LFS pointer, not the file itself", "run 'git lfs pull' where it came from"},
    Kind{"<!doctype html", "a web page (HTML)", "download the raw file, not the page that shows it"},
    Kind{"<html", "a web page (HTML)", "download the raw file, not the page that shows it"},
    Kind{"<?xml", "XML", "chokepoint wiring reads NCCL topologies and hwloc; a job is YAML or a framework's settings"},
    Kind{"\x89PNG"sv, "a picture (PNG)", "text is read: paste the settings instead of a picture of them"},
    Kind{"\xff\xd8\xff"sv, "a picture (JPEG)", "text is read: paste the settings instead of a picture of them"},
    Kind{"%PDF", "a PDF", "text is read: copy the settings out of it"},
    Kind{"PK\x03\x04"sv, "a ZIP archive or a PyTorch checkpoint", "unpack it, or name the config instead of the weights"},
    Kind{"\x1f\x8b"sv, "compressed (gzip)", "unpack it first: gunzip"},
    Kind{"\x28\xb5\x2f\xfd"sv, "compressed (zstd)", "unpack it first: zstd -d"},
    Kind{"\x7f" "ELF"sv, "a program (ELF)", "name the script or the config that starts it"},
    Kind{"SQLite format 3", "a SQLite database", "chokepoint diagnose reads Nsight Systems exports"},
};

bool is_python(std::string_view text) {
  for (const std::string_view line : split_lines(text)) {
    if (line.starts_with("import ") || line.starts_with("def ") || line.starts_with("class ") ||
        (line.starts_with("from ") && line.find(" import ") != std::string_view::npos))
      return true;
  }
  return false;
}

bool is_model_config(std::string_view text) {
  return text.front() == '{' && (text.find("\"model_type\"") != std::string_view::npos || text.find("\"architectures\"") != std::string_view::npos);
}

Error error(const std::string& file, std::string_view what, std::string_view fix) {
  return {fmt::format("is {}, expected a job or a framework's settings", what), {file, 1, 1}, {std::string(fix)}};
}

}  // namespace

std::optional<Error> not_settings(std::string_view text, const std::string& file) {
  const std::string_view body = trim(text);
  if (body.empty()) return error(file, "empty", "an interrupted download or a full disk leaves such a file: fetch it again");
  const std::string start = lower(body.substr(0, 40));
  for (const Kind& kind : kKinds) {
    if (body.starts_with(kind.beginning) || start.starts_with(kind.beginning)) return error(file, kind.what, kind.fix);
  }
  if (is_model_config(body)) return error(file, "a model's config.json", "give it as the model: --model " + file);
  if (is_python(body)) {
    return error(file, "Python source", "name the file of settings that it reads or saves (torchtitan: --debug.save_config_file)");
  }
  return std::nullopt;
}

std::optional<Error> unbalanced_json(std::string_view text, const std::string& file) {
  struct Open {
    char bracket;
    int line, column;
  };
  std::vector<Open> open;
  int line = 1, column = 0;
  bool quoted = false;
  Open quote{'"', 0, 0};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    ++column;
    if (c == '\n') {
      ++line;
      column = 0;
    }
    if (quoted) {
      if (c == '\\') ++i, ++column;
      quoted = c != '"';
      continue;
    }
    if (c == '"') {
      quoted = true;
      quote = {c, line, column};
    } else if (c == '{' || c == '[') {
      open.push_back({c, line, column});
    } else if (c == '}' || c == ']') {
      const char wanted = c == '}' ? '{' : '[';
      if (open.empty() || open.back().bracket != wanted) {
        return Error{fmt::format("not valid JSON: '{}' closes nothing that is open", c), {file, line, column}, {}};
      }
      open.pop_back();
    }
  }
  const std::vector<std::string> notes = {"the file is cut short, or a bracket or quote is missing"};
  if (quoted) return Error{"not valid JSON: the text in quotes that begins here does not end", {file, quote.line, quote.column}, notes};
  if (!open.empty()) return Error{fmt::format("not valid JSON: the '{}' here is never closed", open.back().bracket), {file, open.back().line, open.back().column}, notes};
  return std::nullopt;
}

}  // namespace chokepoint::frameworks
