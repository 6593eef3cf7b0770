// SPDX-License-Identifier: Apache-2.0
#include <chokepoint/base/text.hpp>
#include <chokepoint/base/yaml.hpp>
#include <chokepoint/calibrate/profile.hpp>

#include <cmath>
#include <fmt/format.h>
#include <utility>

namespace chokepoint::calibrate {

namespace {

constexpr int kVersion = 1;
/// A value further from the shipped one than this many prior widths is a slip of the pen, not a machine.
constexpr double kFarthestSigmas = 6;

/// A YAML scalar in double quotes.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

std::string check_yaml(const Check& check) {
  return fmt::format("{{rows: {}, error_before: {:.4g}, error_after: {:.4g}}}", check.rows, check.before, check.after);
}

Result<Check> read_check(const YamlMap& map) {
  Check check;
  TRY_INTO(check.rows, map.required_int("rows", 0, 1 << 30));
  TRY_INTO(check.before, map.required_number("error_before", 0, 1e12));
  TRY_INTO(check.after, map.required_number("error_after", 0, 1e12));
  if (auto done = map.finish(); !done) return tl::make_unexpected(done.error());
  return check;
}

Result<ProfileParameter> read_parameter(const YamlMap& map, const std::vector<ParameterRef>& known, std::size_t inputs) {
  ProfileParameter parameter;
  TRY_INTO(const std::string name, map.required_text("name"));
  std::vector<std::string> names;
  const ParameterRef* found = nullptr;
  for (const ParameterRef& ref : known) {
    names.push_back(ref.info.name);
    if (ref.info.name == name) found = &ref;
  }
  if (found == nullptr) {
    std::vector<std::string> notes{"chokepoint validate --parameters lists them"};
    if (const auto near = nearest(name, names)) notes.insert(notes.begin(), "did you mean '" + *near + "'?");
    return fail("unknown parameter '" + name + "'", map.position("name"), notes);
  }
  parameter.info = found->info;
  TRY_INTO(parameter.value, map.required_number("value", 1e-30, 1e30));
  const double sigma = parameter.info.log_sigma;
  if (!(sigma > 0)) return fail("'" + name + "' is not for a machine to change: it was counted or read from a data sheet", map.position("name"));
  if (std::abs(std::log(parameter.value / parameter.info.value)) > kFarthestSigmas * sigma) {
    return fail(fmt::format("{} is {:.4g}, expected {:.4g} to {:.4g}", name, parameter.value, parameter.info.value * std::exp(-kFarthestSigmas * sigma),
                            parameter.info.value * std::exp(kFarthestSigmas * sigma)),
                map.position("value"), {fmt::format("shipped: {:.4g} {}", parameter.info.value, parameter.info.unit)});
  }
  TRY_INTO(const auto error, map.number("log_error", 0, 1e3));
  parameter.log_error = error.value_or(sigma);
  // Said for people; the shipped value is the program's own.
  for (const char* key : {"unit", "shipped"}) {
    if (auto ignored = map.text(key); !ignored) return tl::make_unexpected(ignored.error());
  }
  TRY_INTO(const std::vector<YamlMap> changes, map.maps("changed_by"));
  for (const YamlMap& change : changes) {
    TRY_INTO(const int input, change.required_int("input", 1, static_cast<int>(inputs)));
    TRY_INTO(const double factor, change.required_number("factor", 1e-6, 1e6));
    if (auto done = change.finish(); !done) return tl::make_unexpected(done.error());
    parameter.changed_by.emplace_back(static_cast<std::size_t>(input - 1), factor);
  }
  if (auto done = map.finish(); !done) return tl::make_unexpected(done.error());
  return parameter;
}

}  // namespace

std::string to_yaml(const Profile& profile) {
  std::string out = "# Parameters of one machine, from what was measured on it (docs/formats/profile.md).\n";
  out += fmt::format("chokepoint_profile: {}\ninputs:\n", kVersion);
  for (const ProfileInput& input : profile.inputs) {
    out += fmt::format("  - {{name: {}, kind: {}, check: {}}}\n", quoted(input.name), quoted(input.kind), check_yaml(input.check));
  }
  if (profile.held_back.rows > 0) out += "held_back: " + check_yaml(profile.held_back) + "\n";
  out += profile.parameters.empty() ? "parameters: []\n" : "parameters:\n";
  for (const ProfileParameter& p : profile.parameters) {
    out += fmt::format("  - name: {}\n    value: {:.6g}\n    unit: {}\n    shipped: {:.6g}\n    log_error: {:.4g}\n", p.info.name, p.value,
                       quoted(p.info.unit), p.info.value, p.log_error);
    if (p.changed_by.empty()) continue;
    out += "    changed_by:\n";
    for (const auto& [input, factor] : p.changed_by) out += fmt::format("      - {{input: {}, factor: {:.4g}}}\n", input + 1, factor);
  }
  return out;
}

Result<Profile> read_profile(std::string_view text, const std::string& file) {
  TRY_INTO(const YamlMap map, YamlMap::parse(text, file));
  TRY_INTO(const int version, map.required_int("chokepoint_profile", 1, 1 << 20));
  if (version != kVersion) return fail(fmt::format("profile of version {}, this program reads version {}", version, kVersion), map.position("chokepoint_profile"));
  Profile profile;
  profile.file = file;
  TRY_INTO(const std::vector<YamlMap> inputs, map.maps("inputs"));
  for (const YamlMap& entry : inputs) {
    ProfileInput input;
    TRY_INTO(input.name, entry.required_text("name"));
    TRY_INTO(input.kind, entry.required_text("kind"));
    TRY_INTO(const YamlMap check, entry.required_map("check"));
    TRY_INTO(input.check, read_check(check));
    if (auto done = entry.finish(); !done) return tl::make_unexpected(done.error());
    profile.inputs.push_back(std::move(input));
  }
  TRY_INTO(const auto held_back, map.map("held_back"));
  if (held_back) { TRY_INTO(profile.held_back, read_check(*held_back)); }
  simulate::Parameters defaults;
  const std::vector<ParameterRef> known = simulate::refs(defaults);
  TRY_INTO(const std::vector<YamlMap> parameters, map.maps("parameters"));
  for (const YamlMap& entry : parameters) {
    TRY_INTO(ProfileParameter parameter, read_parameter(entry, known, profile.inputs.size()));
    for (const ProfileParameter& other : profile.parameters) {
      if (other.info.name == parameter.info.name) return fail("'" + other.info.name + "' stands twice", entry.position("name"));
    }
    profile.parameters.push_back(std::move(parameter));
  }
  if (auto done = map.finish(); !done) return tl::make_unexpected(done.error());
  return profile;
}

}  // namespace chokepoint::calibrate
