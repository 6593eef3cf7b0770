# SPDX-License-Identifier: Apache-2.0
# cmake -DFOLDER=web -DFILES="index.html;all.js=a.js+b.js" -DSYMBOL=web -DOUTPUT=x.cpp -P embed_folder.cmake
# Compiles text files into one table of names and contents: chokepoint::embedded::SYMBOL (src/service/assets.hpp). An entry
# NAME=PART+PART is made of the parts, one after the other.
set(code "// Written at build time; do not edit.\n#include \"assets.hpp\"\nnamespace chokepoint::embedded {\nnamespace {\n")
string(APPEND code "constexpr chokepoint::service::Asset kFiles[] = {\n")
foreach(entry IN LISTS FILES)
  string(REGEX REPLACE "=.*" "" name "${entry}")
  string(REGEX REPLACE "^.*=" "" parts "${entry}")
  string(REPLACE "+" ";" parts "${parts}")
  set(text "")
  foreach(part IN LISTS parts)
    file(READ "${FOLDER}/${part}" more)
    string(APPEND text "${more}")
  endforeach()
  string(FIND "${text}" ")file\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${name} contains the delimiter of a raw string literal")
  endif()
  string(APPEND code "{\"${name}\", R\"file(${text})file\"},\n")
endforeach()
string(APPEND code "};\n}  // namespace\nconst std::span<const chokepoint::service::Asset> ${SYMBOL}(kFiles);\n}\n")
file(WRITE "${OUTPUT}" "${code}")
