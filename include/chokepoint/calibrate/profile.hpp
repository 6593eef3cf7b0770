// SPDX-License-Identifier: Apache-2.0
#pragma once
// A machine's own parameters: what its measurements changed, by how much and through which input. A profile is a YAML
// file (docs/formats/profile.md) that predict, plan and validate take in place of the shipped values.
#include <chokepoint/base/result.hpp>
#include <chokepoint/calibrate/inputs.hpp>
#include <chokepoint/simulate/predict.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace chokepoint::calibrate {

/// How well the model meets observations: median |error|, before and after.
struct Check {
  int rows = 0;
  double before = 0;
  double after = 0;
};

struct ProfileInput {
  std::string name;
  std::string kind;
  Check check;                      ///< with the profile made of all of them
};

struct ProfileParameter {
  Parameter info;                   ///< `value`: as shipped
  double value = 0;
  double log_error = 0;             ///< standard error of the logarithm
  std::vector<std::pair<std::size_t, double>> changed_by;  ///< input (from 0) and the factor it alone would have set
};

struct Profile {
  std::string file;                 ///< where it was read from
  std::vector<ProfileInput> inputs;
  Check held_back;                  ///< rows that a first fit did not see; none with fewer than three of a kind
  std::vector<ProfileParameter> parameters;  ///< those that changed

  /// A calibration that makes rows worse which it did not see is not to be trusted.
  bool makes_worse() const;
};

/// The most probable parameters of the machine. An error when there is nothing to learn from.
Result<Profile> make_profile(const std::vector<Input>& inputs);

std::string to_yaml(const Profile& profile);
Result<Profile> read_profile(std::string_view text, const std::string& file);

/// The shipped parameters with the profile's values.
simulate::Parameters parameters_of(const Profile& profile);
/// One line for each changed parameter, for the assumptions of a prediction.
std::vector<Note> assumptions_of(const Profile& profile);

}  // namespace chokepoint::calibrate
