// SPDX-License-Identifier: Apache-2.0
#pragma once
// A diagnosis for people (one screen) and for programs (JSON, schema in docs/formats/json.md).
#include <chokepoint/diagnose/diagnose.hpp>
#include <chokepoint/diagnose/hang.hpp>
#include <chokepoint/diagnose/log_trend.hpp>
#include <chokepoint/diagnose/log_watch.hpp>
#include <chokepoint/diagnose/regression.hpp>
#include <chokepoint/diagnose/straggler.hpp>
#include <chokepoint/diagnose/worth.hpp>
#include <chokepoint/report/style.hpp>
#include <string>

namespace chokepoint::report {

std::string diagnose_text(const diagnose::Diagnosis& diagnosis, const Style& style, bool quiet);
std::string diagnose_json(const diagnose::Diagnosis& diagnosis);
std::string straggler_text(const diagnose::StragglerReport& report, const Style& style, bool quiet);
std::string straggler_json(const diagnose::StragglerReport& report);
std::string hang_text(const diagnose::HangReport& report, const Style& style, bool quiet);
std::string hang_json(const diagnose::HangReport& report);
std::string log_text(const diagnose::LogReport& report, const Style& style, bool quiet);
std::string log_json(const diagnose::LogReport& report);

/// What changed against an earlier run.
std::string regression_text(const diagnose::Regression& regression, const Style& style, bool quiet);
/// What curing the first cause brings; empty where neither tokens nor a price are known.
std::string worth_text(const diagnose::WorthReport& worth, const Style& style);

/// What was asked for besides the diagnosis itself.
struct DiagnoseExtras {
  const diagnose::Regression* baseline = nullptr;  ///< "baseline" of the JSON
  const diagnose::WorthReport* worth = nullptr;    ///< "worth"
};
std::string diagnose_json(const diagnose::Diagnosis& diagnosis, const DiagnoseExtras& extras);
std::string straggler_json(const diagnose::StragglerReport& report, const DiagnoseExtras& extras);
std::string log_json(const diagnose::LogReport& report, const DiagnoseExtras& extras);

/// An event of a followed job: one line of text, or one JSON object on a line.
std::string event_line(const diagnose::WatchEvent& event, const Style& style);
std::string event_json_line(const diagnose::WatchEvent& event);
/// Where the followed logs stand: one JSON object on a line.
std::string watch_json_line(const std::vector<diagnose::WatchedLog>& logs);

/// Metrics in Prometheus' text format, for node_exporter's textfile collector. Names: docs/formats/prometheus.md.
std::string diagnose_prometheus(const diagnose::Diagnosis& diagnosis);
std::string straggler_prometheus(const diagnose::StragglerReport& report);
std::string hang_prometheus(const diagnose::HangReport& report);
std::string log_prometheus(const diagnose::LogReport& report);
std::string watch_prometheus(const std::vector<diagnose::WatchedLog>& logs, const std::vector<diagnose::WatchEvent>& events);

}  // namespace chokepoint::report
