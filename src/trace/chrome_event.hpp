// SPDX-License-Identifier: Apache-2.0
#pragma once
// One event of a Chrome trace as text: which fields it has, not what they mean.
#include <chokepoint/trace/columns.hpp>
#include <string_view>

#include "json_scan.hpp"

namespace chokepoint::trace {

/// What a category's events are to us.
enum class Category : std::uint8_t { kNone, kSkip, kUnknown, kDevice, kDeviceCopy, kDeviceSet, kCall, kOperator, kAnnotation, kFlow };
Category category_of(std::string_view text);

struct ChromeEvent {
  char phase = 0;
  Category category = Category::kNone;
  std::string_view category_text;
  std::string_view name;
  std::string_view pid;
  std::string_view tid;
  std::string_view ts;
  std::string_view dur;
  std::string_view id;
  std::string_view args;   ///< the object with its braces; empty when absent
  bool skipped = false;    ///< left early: no analysis needs it
};

/// `p` stands after the event's opening brace. Leaves early, over the rest of the event, once phase or category say that
/// nothing needs it.
Scan read_event(const char*& p, const char* end, ChromeEvent& event);

/// Arguments of device work and host calls.
struct EventArgs {
  std::int64_t correlation = 0;
  std::int64_t stream = -1;
  std::int64_t device = -1;
  bool has_stream = false;
  bool has_collective = false;
  std::string_view op, group, description, ranks, dtype;
  std::int64_t in_elements = -1, out_elements = -1, group_size = -1, sequence = -1, peer = -1;
  // of an operation timeline
  std::int64_t step = -1;
};
void read_args(std::string_view text, EventArgs& args);

}  // namespace chokepoint::trace
