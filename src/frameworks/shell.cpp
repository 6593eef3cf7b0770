// SPDX-License-Identifier: Apache-2.0
#include "shell.hpp"

#include <chokepoint/base/text.hpp>

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <optional>

#include "shell_condition.hpp"

namespace chokepoint::frameworks {

namespace {

/// A launch script is a page; a variable that doubles itself in a few lines must not fill the memory.
constexpr std::size_t kMostCharacters = 4u << 20;
constexpr int kMostNesting = 20;
/// Stands for a blank inside $(command): what is not run is one word, wherever its text goes.
constexpr char kHeldBlank = '\x01';

struct Char {
  char c = 0;
  int line = 0;
  int column = 0;
};
using Chars = std::vector<Char>;

Chars with_places(std::string_view text) {
  Chars out;
  int line = 1, column = 1;
  for (const char c : text) {
    if (c == '\r') continue;
    out.push_back({c, line, column++});
    if (c == '\n') ++line, column = 1;
  }
  return out;
}

std::string plain(const Chars& chars) {
  std::string out;
  for (const Char& c : chars) out.push_back(c.c == kHeldBlank ? ' ' : c.c);
  return out;
}

bool declares(std::string_view word) {
  return word == "export" || word == "declare" || word == "local" || word == "readonly" || word == "typeset";
}

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

/// + - * / % and brackets over whole numbers, as $((...)) has them; no value where a name is not known.
class Arithmetic {
 public:
  explicit Arithmetic(std::string_view text) : text_(text) {}
  std::optional<long long> value() {
    const auto result = sum();
    skip();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  static constexpr long long kLargest = 1LL << 40;
  void skip() {
    while (at_ < text_.size() && (blank(text_[at_]) || text_[at_] == '$' || text_[at_] == '{' || text_[at_] == '}'))
      ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::optional<long long> unit() {
    if (depth_ > kMostNesting) return std::nullopt;
    if (take('(')) {
      ++depth_;
      const auto inner = sum();
      --depth_;
      return take(')') ? inner : std::nullopt;
    }
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    const auto number = to_int(text_.substr(begin, at_ - begin));
    return number ? std::optional<long long>(*number) : std::nullopt;
  }
  std::optional<long long> product() {
    auto left = unit();
    for (;;) {
      skip();
      if (!left || at_ >= text_.size() || std::string_view("*/%").find(text_[at_]) == std::string_view::npos)
        return left;
      const char op = text_[at_++];
      const auto right = unit();
      if (!right || (op != '*' && *right == 0)) return std::nullopt;
      left = op == '*' ? *left * *right : op == '/' ? *left / *right : *left % *right;
      if (*left > kLargest || *left < -kLargest) return std::nullopt;
    }
  }
  std::optional<long long> sum() {
    auto left = product();
    for (;;) {
      if (take('+')) {
        const auto right = product();
        if (!left || !right) return std::nullopt;
        left = *left + *right;
      } else if (take('-')) {
        const auto right = product();
        if (!left || !right) return std::nullopt;
        left = *left - *right;
      } else {
        return left;
      }
    }
  }
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : file_(file), in_(with_places(text)) {}

  Result<Script> run() {
    while (at_ < in_.size()) {
      TRY_INTO([[maybe_unused]] const bool ok, command());
      if (work_ > kMostCharacters)
        return fail("variables unfold to more than 4 MiB, expected a launch script", {file_, 0, 0});
    }
    return std::move(script_);
  }

 private:
  struct Piece {
    Chars chars;
    bool quoted = false;  ///< an empty word counts, and blanks in it do not split
  };

  SourcePos pos(const Char& c) const { return {file_, c.line, c.column}; }

  /// One command up to an unquoted newline, ';', '|' or '&'.
  Result<bool> command() {
    std::vector<Chars> words;
    char joined = ' ';  // && or || to the next command
    while (at_ < in_.size()) {
      const char c = in_[at_].c;
      if (c == ' ' || c == '\t') {
        ++at_;
      } else if (c == '\\' && at_ + 1 < in_.size() && in_[at_ + 1].c == '\n') {
        at_ += 2;
      } else if (c == '#') {
        comment();
      } else if (redirects()) {
        continue;
      } else if (c == '\n' || c == ';' || c == '|' || c == '&') {
        joined = at_ + 1 < in_.size() && in_[at_ + 1].c == c && (c == '&' || c == '|') ? c : ' ';
        at_ += joined == ' ' ? 1 : 2;
        break;
      } else if (c == '<' && at_ + 1 < in_.size() && in_[at_ + 1].c == '<') {
        here_document();
      } else if (c == '(' || c == ')') {
        ++at_;
        if (c == ')' && cases_ > 0 && words.size() == 1) words.clear();  // the pattern of a case
      } else if (!((words.empty() || declares(plain(words.front()))) && assignment())) {
        word(words);
        keyword(words);
      }
      if (work_ > kMostCharacters) break;
    }
    finish(std::move(words), joined);
    target_.clear();
    return true;
  }

  /// "then X=1": what follows is a command of its own.
  void keyword(std::vector<Chars>& words) {
    if (words.size() != 1) return;
    const std::string first = plain(words.front());
    if (first == "else") branches_.otherwise();
    if (first == "then" || first == "else" || first == "do") words.clear();
  }

  /// "> log", "2>&1", "&> log": where the output goes is no part of the command.
  bool redirects() {
    std::size_t p = at_;
    while (p < in_.size() && std::isdigit(static_cast<unsigned char>(in_[p].c)) != 0) ++p;
    if (p == at_ && p < in_.size() && in_[p].c == '&') ++p;
    if (p >= in_.size() || (in_[p].c != '>' && in_[p].c != '<')) return false;
    if (in_[p].c == '<' && p + 1 < in_.size() && in_[p + 1].c == '<') return false;
    at_ = p + 1;
    while (at_ < in_.size() && (in_[at_].c == '>' || in_[at_].c == '&')) ++at_;
    while (at_ < in_.size() && (in_[at_].c == ' ' || in_[at_].c == '\t')) ++at_;
    target_.clear();
    for (const Piece& piece : pieces()) target_ += plain(piece.chars);
    return true;
  }

  void comment() {
    std::string line;
    const std::size_t begin = at_;
    while (at_ < in_.size() && in_[at_].c != '\n') line.push_back(in_[at_++].c);
    if (!line.starts_with("#SBATCH")) return;
    Chars rest(in_.begin() + static_cast<std::ptrdiff_t>(begin) + 7, in_.begin() + static_cast<std::ptrdiff_t>(at_));
    for (const Chars& part : split(rest)) script_.slurm.push_back({plain(part), pos(part.front())});
    set_slurm_variables();
  }

  /// srun's children see these; scripts compute their world size from them.
  void set_slurm_variables() {
    for (std::size_t i = 0; i < script_.slurm.size(); ++i) {
      std::string key = script_.slurm[i].text;
      std::string value;
      if (const auto equals = key.find('='); equals != std::string::npos) {
        value = key.substr(equals + 1);
        key = key.substr(0, equals);
      } else if (i + 1 < script_.slurm.size()) {
        value = script_.slurm[i + 1].text;
      }
      const auto set = [&](const char* name, std::string_view text) {
        Chars chars;
        for (const char c : text) chars.push_back({c, script_.slurm[i].pos.line, script_.slurm[i].pos.column});
        variables_[name] = {chars};
      };
      if (key == "--nodes" || key == "-N") {
        for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}) set(name, value);
      } else if (key == "--ntasks-per-node") {
        set("SLURM_NTASKS_PER_NODE", value);
      } else if (key == "--ntasks" || key == "-n") {
        set("SLURM_NTASKS", value);
      } else if (key == "--gpus-per-node" || key == "--gres") {
        const std::size_t colon = value.rfind(':');
        const std::string gpus = colon == std::string::npos ? value : value.substr(colon + 1);
        for (const char* name : {"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"}) set(name, gpus);
      } else if (key.starts_with("-N") && to_int(key.substr(2))) {
        for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}) set(name, key.substr(2));
      }
    }
  }

  /// <<WORD: the lines up to WORD; where the command writes a file ("cat <<EOF > ds.json"), they are its text.
  void here_document() {
    at_ += 2;
    if (at_ < in_.size() && in_[at_].c == '-') ++at_;
    std::string end;
    bool verbatim = false;
    while (at_ < in_.size() && (in_[at_].c == ' ' || in_[at_].c == '\'' || in_[at_].c == '"'))
      verbatim = in_[at_++].c != ' ' || verbatim;
    while (at_ < in_.size() && in_name(in_[at_].c)) end.push_back(in_[at_++].c);
    while (at_ < in_.size() && in_[at_].c != '\n') {
      if (!redirects()) ++at_;
    }
    if (at_ < in_.size()) ++at_;
    std::string body, line;
    while (at_ < in_.size()) {
      const char c = in_[at_++].c;
      line.push_back(c);
      if (c != '\n') continue;
      if (trim(line) == end) break;
      body += line;
      line.clear();
    }
    if (at_ > 0 && at_ <= in_.size() && in_[at_ - 1].c == '\n') --at_;
    work_ += body.size();
    if (!target_.empty()) script_.files[target_] = verbatim ? body : with_variables(body);
  }

  /// $NAME and ${NAME} in a text replaced where the script sets them.
  std::string with_variables(const std::string& text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      std::size_t begin = i + 1;
      const bool braces = text[i] == '$' && begin < text.size() && text[begin] == '{';
      if (braces) ++begin;
      std::size_t end = begin;
      while (text[i] == '$' && end < text.size() && in_name(text[end])) ++end;
      const auto found = variables_.find(text.substr(begin, end - begin));
      const bool closed = !braces || (end < text.size() && text[end] == '}');
      if (text[i] != '$' || end == begin || found == variables_.end() || found->second.size() != 1 || !closed) {
        out.push_back(text[i]);
        continue;
      }
      out += plain(found->second.front());
      work_ += found->second.front().size();
      if (work_ > kMostCharacters) break;
      i = braces ? end : end - 1;
    }
    return out;
  }

  /// NAME=value, NAME+=value, NAME=( words ). False when the text is no assignment.
  bool assignment() {
    std::size_t p = at_;
    std::string name;
    while (p < in_.size() && in_name(in_[p].c)) name.push_back(in_[p++].c);
    const bool adds = p + 1 < in_.size() && in_[p].c == '+' && in_[p + 1].c == '=';
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0 || p >= in_.size()) return false;
    if (!adds && in_[p].c != '=') return false;
    const Char start = in_[at_];
    at_ = p + (adds ? 2 : 1);
    std::vector<Chars> value;
    if (at_ < in_.size() && in_[at_].c == '(') {
      value = array();
    } else {
      Chars joined;
      for (const Piece& piece : pieces()) joined.insert(joined.end(), piece.chars.begin(), piece.chars.end());
      if (!joined.empty()) value.push_back(std::move(joined));
    }
    store(name, std::move(value), adds, pos(start));
    return true;
  }

  void store(const std::string& name, std::vector<Chars> value, bool adds, const SourcePos& at) {
    const Branch branch = branches_.now();
    if (branch == Branch::kSkipped) return;
    std::string text;
    for (const Chars& part : value) text += (text.empty() ? "" : " ") + plain(part);
    // What a branch that is left open sets over an earlier value: the value outside the branch stands.
    if (branch == Branch::kOpen && variables_.count(name) != 0 && !adds) {
      const auto of_branch = open_.find(name);
      if (of_branch != open_.end() && of_branch->second.value != text) {
        script_.left_open.push_back({name, text_of(name), at});
        open_.erase(of_branch);
      }
      return;
    }
    if (branch == Branch::kOpen && !adds) open_[name] = {name, text, at};
    script_.variables.push_back({name, text, at});
    std::vector<Chars>& slot = variables_[name];
    if (!adds) slot.clear();
    if (adds && slot.size() == 1 && value.size() == 1) {
      slot.front().insert(slot.front().end(), value.front().begin(), value.front().end());
    } else {
      slot.insert(slot.end(), std::make_move_iterator(value.begin()), std::make_move_iterator(value.end()));
    }
    for (const Chars& part : slot) work_ += part.size();
  }

  std::string text_of(const std::string& name) const {
    std::string text;
    const auto found = variables_.find(name);
    if (found == variables_.end()) return text;
    for (const Chars& part : found->second) text += (text.empty() ? "" : " ") + plain(part);
    return text;
  }

  std::vector<Chars> array() {
    std::vector<Chars> words;
    ++at_;
    while (at_ < in_.size() && in_[at_].c != ')') {
      if (blank(in_[at_].c)) {
        ++at_;
      } else if (in_[at_].c == '\\' && at_ + 1 < in_.size() && in_[at_ + 1].c == '\n') {
        at_ += 2;
      } else if (in_[at_].c == '#') {
        while (at_ < in_.size() && in_[at_].c != '\n') ++at_;
      } else {
        word(words);
      }
    }
    if (at_ < in_.size()) ++at_;
    return words;
  }

  static std::vector<Chars> split(const Chars& chars) {
    std::vector<Chars> out;
    Chars current;
    for (const Char& c : chars) {
      if (!blank(c.c)) {
        current.push_back(c);
      } else if (!current.empty()) {
        out.push_back(std::move(current));
        current.clear();
      }
    }
    if (!current.empty()) out.push_back(std::move(current));
    return out;
  }

  /// The next word, and more where an unquoted variable splits.
  void word(std::vector<Chars>& words) {
    const std::size_t before = at_;
    Chars current;
    bool quoted = false;
    for (Piece& piece : pieces()) {
      if (piece.quoted) {
        quoted = true;
        current.insert(current.end(), piece.chars.begin(), piece.chars.end());
        continue;
      }
      std::vector<Chars> parts = split(piece.chars);
      const bool starts_apart = !piece.chars.empty() && blank(piece.chars.front().c);
      const bool ends_apart = !piece.chars.empty() && blank(piece.chars.back().c);
      if (starts_apart && !current.empty()) words.push_back(std::move(current)), current.clear();
      for (std::size_t i = 0; i < parts.size(); ++i) {
        current.insert(current.end(), parts[i].begin(), parts[i].end());
        if (i + 1 < parts.size() || ends_apart) words.push_back(std::move(current)), current.clear();
      }
    }
    if (!current.empty() || (quoted && words.empty())) words.push_back(std::move(current));
    if (at_ == before) ++at_;  // a character that no rule takes
  }

  bool ends_word(char c) const {
    return blank(c) || c == ';' || c == '|' || c == '&' || c == '(' || c == ')' || c == '<' || c == '>';
  }

  std::vector<Piece> pieces() {
    std::vector<Piece> out;
    while (at_ < in_.size() && !ends_word(in_[at_].c)) {
      const char c = in_[at_].c;
      if (c == '\\' && at_ + 1 < in_.size()) {
        if (in_[at_ + 1].c == '\n') break;
        out.push_back({{in_[at_ + 1]}, true});
        at_ += 2;
      } else if (c == '\'') {
        ++at_;
        Piece piece{{}, true};
        while (at_ < in_.size() && in_[at_].c != '\'') piece.chars.push_back(in_[at_++]);
        if (at_ < in_.size()) ++at_;
        out.push_back(std::move(piece));
      } else if (c == '"') {
        double_quoted(out);
      } else if (c == '$') {
        expand(out, false);
      } else if (c == '`') {
        const std::size_t begin = at_++;
        while (at_ < in_.size() && in_[at_].c != '`') ++at_;
        if (at_ < in_.size()) ++at_;
        literal(out, begin);
      } else {
        out.push_back({{in_[at_++]}, true});
      }
    }
    return out;
  }

  void double_quoted(std::vector<Piece>& out) {
    ++at_;
    out.push_back({{}, true});
    while (at_ < in_.size() && in_[at_].c != '"') {
      if (in_[at_].c == '\\' && at_ + 1 < in_.size()) {
        const Char next = in_[at_ + 1];
        at_ += 2;
        if (next.c != '\n') out.push_back({{next}, true});
      } else if (in_[at_].c == '$') {
        expand(out, true);
      } else {
        out.push_back({{in_[at_++]}, true});
      }
    }
    if (at_ < in_.size()) ++at_;
  }

  /// Text that stands for itself, from `begin` to here.
  void literal(std::vector<Piece>& out, std::size_t begin) {
    Chars chars(in_.begin() + static_cast<std::ptrdiff_t>(begin), in_.begin() + static_cast<std::ptrdiff_t>(at_));
    for (Char& c : chars) {
      if (blank(c.c)) c.c = kHeldBlank;
    }
    out.push_back({std::move(chars), true});
  }

  void expand(std::vector<Piece>& out, bool quoted) {
    const std::size_t begin = at_++;
    if (at_ >= in_.size()) return literal(out, begin);
    if (in_[at_].c == '(') return parenthesis(out, begin);
    std::string name;
    std::string rest;
    if (in_[at_].c == '{') {
      int depth = 0;
      std::string inner;
      for (; at_ < in_.size(); ++at_) {
        if (in_[at_].c == '{') ++depth;
        if (in_[at_].c == '}' && --depth == 0) break;
        if (depth >= 1 && !(depth == 1 && in_[at_].c == '{')) inner.push_back(in_[at_].c);
      }
      if (at_ < in_.size()) ++at_;
      std::size_t n = 0;
      while (n < inner.size() && in_name(inner[n])) ++n;
      name = inner.substr(0, n);
      rest = inner.substr(n);
    } else if (in_name(in_[at_].c)) {
      while (at_ < in_.size() && in_name(in_[at_].c)) name.push_back(in_[at_++].c);
    } else if (in_[at_].c == '@' || in_[at_].c == '*') {
      ++at_;  // the script's own arguments: it is read as started without any
      return;
    } else {
      ++at_;
    }
    const auto found = variables_.find(name);
    if (found != variables_.end()) return insert(out, found->second, quoted, rest == "[@]");
    if (rest.starts_with(":-") || rest.starts_with(":=") || (rest.starts_with('-') && rest.size() > 1)) {
      Chars value;
      for (const char c : rest.substr(rest.front() == ':' ? 2 : 1))
        value.push_back({c, in_[begin].line, in_[begin].column});
      const std::vector<Chars> resolved = resolved_default(value);
      if (rest.starts_with(":=")) store(name, resolved, false, pos(in_[begin]));
      return insert(out, resolved, quoted, false);
    }
    literal(out, begin);
  }

  /// The default of ${X:-$Y} when it is a variable by itself.
  std::vector<Chars> resolved_default(const Chars& value) const {
    std::string name = plain(value);
    if (name.starts_with('$')) {
      name = name.substr(1);
      if (name.starts_with('{') && name.ends_with('}')) name = name.substr(1, name.size() - 2);
      const auto found = variables_.find(name);
      if (found != variables_.end()) return found->second;
    }
    return {value};
  }

  void insert(std::vector<Piece>& out, const std::vector<Chars>& value, bool quoted, bool each) {
    Chars joined;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) joined.push_back({' ', value[i].empty() ? 0 : value[i].front().line, 0});
      joined.insert(joined.end(), value[i].begin(), value[i].end());
    }
    work_ += joined.size();
    if (work_ > kMostCharacters) return;
    out.push_back({std::move(joined), quoted && !each && value.size() <= 1});
  }

  /// $((...)) is worked out; $(command) stays as it is, for it is not run.
  void parenthesis(std::vector<Piece>& out, std::size_t begin) {
    const bool arithmetic = at_ + 1 < in_.size() && in_[at_ + 1].c == '(';
    int depth = 0;
    std::string inner;
    for (; at_ < in_.size(); ++at_) {
      if (in_[at_].c == '(') ++depth;
      if (in_[at_].c == ')' && --depth == 0) break;
      inner.push_back(in_[at_].c);
    }
    if (at_ < in_.size()) ++at_;
    if (arithmetic && inner.size() > 3) {
      const auto value = Arithmetic(with_values(inner.substr(2, inner.size() - 3))).value();
      if (value) {
        Chars chars;
        for (const char c : fmt::format("{}", *value)) chars.push_back({c, in_[begin].line, in_[begin].column});
        out.push_back({std::move(chars), true});
        return;
      }
    }
    if (!arithmetic && trim(inner).starts_with("(expr ")) {
      std::string sum(trim(inner).substr(5));
      std::erase_if(sum, [](char c) { return c == '\\' || c == '\'' || c == '"'; });
      if (const auto value = Arithmetic(with_values(sum)).value()) {
        Chars chars;
        for (const char c : fmt::format("{}", *value)) chars.push_back({c, in_[begin].line, in_[begin].column});
        out.push_back({std::move(chars), true});
        return;
      }
    }
    literal(out, begin);
  }

  /// Names in an arithmetic text replaced by their values.
  std::string with_values(const std::string& text) const {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      if (!in_name(text[i]) || std::isdigit(static_cast<unsigned char>(text[i])) != 0) {
        out.push_back(text[i++]);
        continue;
      }
      std::string name;
      while (i < text.size() && in_name(text[i])) name.push_back(text[i++]);
      const auto found = variables_.find(name);
      out += found != variables_.end() && found->second.size() == 1 ? plain(found->second.front()) : name;
    }
    return out;
  }

  /// Conditions and branches; true: the command is no more than that.
  bool control(const std::string& first, const std::vector<Chars>& words, char joined) {
    const auto truth = [&](std::size_t from) {
      std::vector<std::string> text;
      for (std::size_t i = from; i < words.size(); ++i) text.push_back(plain(words[i]));
      return joined == ' ' ? condition(text) : std::nullopt;
    };
    if (first == "if") branches_.begin(truth(1));
    if (first == "elif") branches_.next(truth(1));
    if (first == "case") begin_case();
    if (first == "esac") cases_ = std::max(0, cases_ - 1);
    if (first == "fi" || first == "esac") branches_.end();
    const bool test = first == "[" || first == "[[" || first == "test";
    if (!test || joined == ' ') return first == "if" || first == "elif" || first == "case" || test;
    std::vector<std::string> text;
    for (const Chars& chars : words) text.push_back(plain(chars));
    auto holds = condition(text);
    if (holds && joined == '|') holds = !*holds;
    branches_.guard(holds);
    return true;
  }

  /// Which pattern fits is left open.
  void begin_case() {
    branches_.begin_open();
    ++cases_;
  }

  void finish(std::vector<Chars> words, char joined) {
    if (words.empty()) return branches_.drop_guard();
    const std::string first = plain(words.front());
    const bool guards = (first == "[" || first == "[[" || first == "test") && joined != ' ';
    if (!guards && first != "if" && first != "elif" && branches_.now() == Branch::kSkipped) {
      control(first == "fi" || first == "esac" || first == "case" ? first : "", words, joined);
      return branches_.drop_guard();
    }
    if (control(first, words, joined)) {
      if (!guards) branches_.drop_guard();
      return;
    }
    branches_.drop_guard();
    if (declares(first)) return assignments_of(words);
    if (first == "while" || first == "echo" || first == "printf") return;
    std::vector<Word> out;
    for (const Chars& chars : words) {
      const std::string text = plain(chars);
      const bool program = text.find("torchrun") != std::string::npos || text.find("python") != std::string::npos ||
                           text.find(" --") != std::string::npos;
      const bool line = program && std::any_of(chars.begin(), chars.end(), [](const Char& c) { return blank(c.c); });
      if (!line) {
        out.push_back({text, chars.empty() ? SourcePos{file_, 0, 0} : pos(chars.front())});
        continue;
      }
      for (const Chars& part : split(chars)) {  // bash -c "torchrun ..."
        if (plain(part) != "\\") out.push_back({plain(part), pos(part.front())});
      }
    }
    script_.commands.push_back(std::move(out));
  }

  /// export A=1 B="2": the words were split already, so only simple values arrive here.
  void assignments_of(const std::vector<Chars>& words) {
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string text = plain(words[i]);
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0) continue;
      Chars value(words[i].begin() + static_cast<std::ptrdiff_t>(equals) + 1, words[i].end());
      store(text.substr(0, equals), {std::move(value)}, false, pos(words[i].front()));
    }
  }

  std::string file_;
  Chars in_;
  std::size_t at_ = 0;
  std::size_t work_ = 0;
  Branches branches_;
  int cases_ = 0;
  std::map<std::string, Assignment> open_;  ///< set in a branch that is left open, by name
  std::string target_;  ///< file that the current command writes
  std::map<std::string, std::vector<Chars>> variables_;
  Script script_;
};

}  // namespace

Result<Script> read_shell(std::string_view text, const std::string& file) {
  if (text.size() > kMostCharacters) return fail("is larger than any launch script", {file, 0, 0});
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\0') return fail("holds a zero byte, expected a script", {file, 0, 0});
  }
  return Reader(text, file).run();
}

}  // namespace chokepoint::frameworks
