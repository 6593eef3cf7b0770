// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the free-text columns of a table of runs say, in the words people use: framework, attention kernel, year,
// FLOP convention. Words are matched wherever they stand; nothing here depends on one source, row or model.
#include "run_fields.hpp"

#include <chokepoint/parallel/job.hpp>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace chokepoint::validate {

/// True when any of the phrases (lower case) occurs in the text, case ignored.
bool mentions(std::string_view text, std::initializer_list<std::string_view> phrases);

/// Number that directly follows the first occurrence of `phrase` (lower case): "hw_tflops_gpu=131" -> 131.
std::optional<double> number_after(std::string_view text, std::string_view phrase);
/// Number that stands directly before `phrase`: "4K tokens per gpu" with "k tokens per gpu" -> 4.
std::optional<double> number_before(std::string_view text, std::string_view phrase);

/// The framework that the words name; nothing for unknown words.
std::optional<parallel::Framework> framework_from_words(std::string_view words);
/// Megatron-Core and what is built on it (NeMo, Megatron-Bridge): fused kernels, distributed optimizer, overlap.
bool is_megatron_core(std::string_view framework_words, int year);

/// Year of the software: a date or a year-month version in the source, its identifier, the notes or the address.
std::optional<int> year_from_words(const RunFields& row);

/// How the FLOP figures of the row count.
enum class FlopsCounted { kModel, kModelCausal, kHardware };
FlopsCounted flops_counted(const RunFields& row);
/// "8*P*tokens": FLOPs = factor x parameters x tokens.
std::optional<double> flops_per_parameter_and_token(std::string_view notes);

}  // namespace chokepoint::validate
