// SPDX-License-Identifier: Apache-2.0
#pragma once
// A page is a file that opens by itself, or what the page of `chokepoint serve` draws with scripts that it has already.

namespace chokepoint::report {

enum class PageForm {
  kFile,  ///< one self-contained HTML file
  kData,  ///< JSON: `view` (name of the script), `kind`, `verdict`, `facts`, `data`; sentences in the language, no words
};

}  // namespace chokepoint::report
