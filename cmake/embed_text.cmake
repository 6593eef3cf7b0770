# SPDX-License-Identifier: Apache-2.0
# cmake -DINPUT=page.html -DOUTPUT=x.cpp -DSYMBOL=page -P embed_text.cmake
# Turns a text file into a string literal: chokepoint::embedded::SYMBOL.
file(READ "${INPUT}" text)
string(FIND "${text}" ")text\"" clash)
if(NOT clash EQUAL -1)
  message(FATAL_ERROR "${INPUT} contains the delimiter of a raw string literal")
endif()
get_filename_component(name "${INPUT}" NAME)
file(WRITE "${OUTPUT}"
"// Written from ${name}; do not edit.
#include <string_view>
namespace chokepoint::embedded {
extern const std::string_view ${SYMBOL};
const std::string_view ${SYMBOL} = R\"text(${text})text\";
}
")
