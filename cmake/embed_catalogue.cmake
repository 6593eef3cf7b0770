# SPDX-License-Identifier: Apache-2.0
# cmake -DINPUT=x.yaml -DOUTPUT=x.cpp -DSYMBOL=x -P embed_catalogue.cmake
# Turns a catalogue (one YAML document per entry, separated by '---' lines) into an array of raw string literals. One
# literal per entry keeps each far below the 64 KiB that compilers must accept.
file(READ "${INPUT}" text)
string(FIND "${text}" ")yaml\"" clash)
if(NOT clash EQUAL -1)
  message(FATAL_ERROR "${INPUT} contains the delimiter of a raw string literal")
endif()
string(REPLACE "\n---\n" "\n)yaml\",\nR\"yaml(" text "${text}")
get_filename_component(name "${INPUT}" NAME)
file(WRITE "${OUTPUT}"
"// Written from catalogue/${name}; do not edit.
#include <chokepoint/base/catalogue_text.hpp>
namespace chokepoint::embedded {
namespace {
constexpr std::string_view kDocuments[] = {
R\"yaml(${text})yaml\"};
}
extern const CatalogueText ${SYMBOL};
const CatalogueText ${SYMBOL}{\"catalogue/${name}\", kDocuments};
}
")
