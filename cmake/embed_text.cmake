# SPDX-License-Identifier: Apache-2.0
# cmake -DINPUT=page.html -DOUTPUT=x.cpp -DSYMBOL=page -P embed_text.cmake
# Turns a text file into chokepoint::embedded::SYMBOL: byte by byte, as a string literal need not be longer than 64 KiB.
file(READ "${INPUT}" bytes HEX)
string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
get_filename_component(name "${INPUT}" NAME)
file(WRITE "${OUTPUT}"
"// Written from ${name}; do not edit.
#include <string_view>
namespace chokepoint::embedded {
extern const std::string_view ${SYMBOL};
namespace {
constexpr char kText[] = {${bytes}};
}
const std::string_view ${SYMBOL}(kText, sizeof kText);
}
")
