// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pictures as files. All are made as SVG; a file whose name ends in .png gets the same picture as pixels, drawn by librsvg,
// which is opened at run time where it is present (docs/decisions/0006): nothing else needs it.
#include <chokepoint/base/result.hpp>
#include <string>
#include <string_view>

namespace chokepoint::report {

/// Pixels for each unit of the SVG, so that small print stays sharp; less where the picture would be huge.
inline constexpr double kPixelsPerUnit = 2;

/// The content of a picture file of this name: the SVG itself, or PNG.
Result<std::string> picture_for(std::string_view path, std::string svg);
Result<std::string> png_of(std::string_view svg);

}  // namespace chokepoint::report
