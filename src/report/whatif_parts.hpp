// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sections of a what-if report.
#include <chokepoint/report/style.hpp>
#include <chokepoint/whatif/study.hpp>
#include <string>
#include <string_view>

namespace chokepoint::report {

/// "2.69 USD an hour (rented, specialist; 2026-05-22)"
std::string price_words(const whatif::HourlyPrice& price);
/// Amounts with three significant digits or whole dollars: "0.0123", "12.3", "1,234", "5.67 M".
std::string usd(double amount);
/// What the study's money counts, in a few sentences.
std::string money_meaning(const whatif::Study& study);
/// "-21 % (-24 .. -18)"
std::string ratio_words(const whatif::Ratio& ratio);
/// A titled paragraph, title and text in the style's language.
std::string said_line(std::string_view title, std::string_view text, const Style& style);
/// Answers side by side, where there are three or more.
std::string comparison_section(const whatif::Study& study, const Style& style);
std::string money_section(const whatif::Study& study, const Style& style);
std::string sensitivity_section(const whatif::Study& study, const Style& style);
std::string scale_section(const whatif::Study& study, const Style& style);
std::string break_even_section(const whatif::Study& study, const Style& style);

}  // namespace chokepoint::report
