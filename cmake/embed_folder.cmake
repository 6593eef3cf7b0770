# SPDX-License-Identifier: Apache-2.0
# cmake -DFOLDER=web -DFILES="index.html;app.js" -DSYMBOL=web -DOUTPUT=x.cpp -P embed_folder.cmake
# Compiles text files into one table of names and contents: chokepoint::embedded::SYMBOL (src/service/assets.hpp).
set(code "// Written at build time; do not edit.\n#include \"assets.hpp\"\nnamespace chokepoint::embedded {\nnamespace {\n")
string(APPEND code "constexpr chokepoint::service::Asset kFiles[] = {\n")
foreach(name IN LISTS FILES)
  file(READ "${FOLDER}/${name}" text)
  string(FIND "${text}" ")file\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${FOLDER}/${name} contains the delimiter of a raw string literal")
  endif()
  string(APPEND code "{\"${name}\", R\"file(${text})file\"},\n")
endforeach()
string(APPEND code "};\n}  // namespace\nconst std::span<const chokepoint::service::Asset> ${SYMBOL}(kFiles);\n}\n")
file(WRITE "${OUTPUT}" "${code}")
