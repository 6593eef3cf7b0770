// SPDX-License-Identifier: Apache-2.0
#include "chrome_event.hpp"

#include <array>

namespace chokepoint::trace {

namespace {

struct CategoryName {
  std::string_view text;
  Category category;
};

constexpr std::array<CategoryName, 38> kCategories = {{
    {"cpu_op", Category::kOperator},
    {"kernel", Category::kDevice},
    {"cuda_runtime", Category::kCall},
    {"ac2g", Category::kFlow},
    {"python_function", Category::kSkip},
    {"fwdbwd", Category::kSkip},
    {"cpu_instant_event", Category::kSkip},
    {"user_annotation", Category::kAnnotation},
    {"gpu_memcpy", Category::kDeviceCopy},
    {"gpu_memset", Category::kDeviceSet},
    {"cuda_driver", Category::kCall},
    {"gpu_user_annotation", Category::kSkip},
    {"cuda_sync", Category::kSkip},
    {"cuda_event", Category::kSkip},
    {"overhead", Category::kSkip},
    {"Trace", Category::kSkip},
    // until 2021
    {"Operator", Category::kOperator},
    {"Kernel", Category::kDevice},
    {"Runtime", Category::kCall},
    {"Memcpy", Category::kDeviceCopy},
    {"Memset", Category::kDeviceSet},
    {"async", Category::kFlow},
    {"async_cpu_to_gpu", Category::kFlow},
    {"async_gpu", Category::kSkip},
    // other devices
    {"mtia_ccp_events", Category::kDevice},
    {"mtia_runtime", Category::kCall},
    {"mtia_insight", Category::kSkip},
    {"xpu_runtime", Category::kCall},
    {"xpu_driver", Category::kCall},
    {"xpu_sync", Category::kSkip},
    {"privateuse1_runtime", Category::kCall},
    {"privateuse1_driver", Category::kCall},
    {"cpu_to_cuda", Category::kFlow},
    // other records of the profiler
    {"cuda_profiler_range", Category::kSkip},
    {"hardware_counters", Category::kSkip},
    {"collective_comm", Category::kSkip},
    {"critical_path", Category::kSkip},
    {"counters", Category::kSkip},
}};

/// Which phases carry work: complete events and begin/end pairs; of flows only the start, for its id.
bool phase_matters(char phase) { return phase == 'X' || phase == 's' || phase == 'B' || phase == 'E'; }

bool can_leave(const ChromeEvent& event) {
  // Of metadata only the names of processes are wanted: they may say a rank.
  if (event.phase == 'M') return !event.name.empty() && event.name != "process_name";
  if (event.phase != 0 && !phase_matters(event.phase)) return true;
  if (event.category == Category::kSkip) return true;
  // A flow's start is needed for its id alone.
  return event.category == Category::kFlow && event.phase == 's' && !event.id.empty();
}

void store(ChromeEvent& event, std::string_view key, const Value& value) {
  switch (key.size()) {
    case 2:
      if (key == "ph" && !value.text.empty()) event.phase = value.text[0];
      if (key == "ts") event.ts = value.text;
      if (key == "id") event.id = value.text;
      break;
    case 3:
      if (key == "cat") {
        event.category_text = value.text;
        event.category = category_of(value.text);
      } else if (key == "pid") {
        event.pid = value.text;
      } else if (key == "tid") {
        event.tid = value.text;
      } else if (key == "dur") {
        event.dur = value.text;
      }
      break;
    case 4:
      if (key == "name") event.name = value.text;
      if (key == "args" && value.kind == Value::Kind::kObject) event.args = value.text;
      break;
    default: break;
  }
}

}  // namespace

Category category_of(std::string_view text) {
  for (const CategoryName& known : kCategories) {
    if (known.text == text) return known.category;
  }
  return text.empty() ? Category::kNone : Category::kUnknown;
}

Scan read_event(const char*& p, const char* end, ChromeEvent& event) {
  std::string_view key;
  Value value;
  for (;;) {
    bool at_end = false;
    if (const Scan scan = read_key(p, end, key, at_end); scan != Scan::kDone) return scan;
    if (at_end) return Scan::kDone;
    if (const Scan scan = read_value(p, end, value); scan != Scan::kDone) return scan;
    store(event, key, value);
    if (key.size() <= 4 && can_leave(event)) {
      event.skipped = event.category != Category::kFlow;
      return skip_container(p, end);
    }
  }
}

namespace {

void store_integer(std::int64_t& to, const Value& value) {
  if (value.kind == Value::Kind::kPlain || value.kind == Value::Kind::kString) parse_integer(value.text, to);
}

/// Device stream as a number; "stream 7" and "7" both occur.
void store_stream(EventArgs& args, const Value& value) {
  std::string_view text = value.text;
  const std::size_t digit = text.find_first_of("-0123456789");
  if (digit == std::string_view::npos) return;
  text.remove_prefix(digit);
  args.has_stream = parse_integer(text, args.stream);
}

}  // namespace

void read_args(std::string_view text, EventArgs& args) {
  if (text.size() < 2) return;
  const char* p = text.data() + 1;
  const char* end = text.data() + text.size();
  std::string_view key;
  Value value;
  for (;;) {
    bool at_end = false;
    if (read_key(p, end, key, at_end) != Scan::kDone || at_end) return;
    if (read_value(p, end, value) != Scan::kDone) return;
    switch (key.size()) {
      case 3: if (key == "Seq") store_integer(args.sequence, value); break;
      case 4: if (key == "step") store_integer(args.step, value); break;
      case 5: if (key == "dtype") args.dtype = value.text; break;
      case 6:
        if (key == "stream") store_stream(args, value);
        if (key == "device") store_integer(args.device, value);
        break;
      case 8: if (key == "Dst Rank" || key == "Src Rank") store_integer(args.peer, value); break;
      case 10: if (key == "Group size") store_integer(args.group_size, value); break;
      case 11: if (key == "correlation") store_integer(args.correlation, value); break;
      case 13: if (key == "In msg nelems") store_integer(args.in_elements, value); break;
      case 14: if (key == "Out msg nelems") store_integer(args.out_elements, value); break;
      case 15:
        if (key == "Collective name") {
          args.op = value.text;
          args.has_collective = true;
        }
        break;
      case 18: if (key == "Process Group Name") args.group = value.text; break;
      case 19: if (key == "Process Group Ranks") args.ranks = value.text; break;
      case 25: if (key == "Process Group Description") args.description = value.text; break;
      default: break;
    }
  }
}

}  // namespace chokepoint::trace
