# SPDX-License-Identifier: Apache-2.0
# cmake -DFOLDER=web -DFILES="index.html;all.js=a.js+b.js" -DSYMBOL=web -DOUTPUT=x.cpp -P embed_folder.cmake
# Compiles text files into one table of names and contents: chokepoint::embedded::SYMBOL (src/service/assets.hpp). An entry
# NAME=PART+PART is made of the parts, one after the other.
set(code "// Written at build time; do not edit.\n#include \"assets.hpp\"\nnamespace chokepoint::embedded {\nnamespace {\n")
set(table "constexpr chokepoint::service::Asset kFiles[] = {\n")
set(number 0)
foreach(entry IN LISTS FILES)
  string(REGEX REPLACE "=.*" "" name "${entry}")
  string(REGEX REPLACE "^.*=" "" parts "${entry}")
  string(REPLACE "+" ";" parts "${parts}")
  set(bytes "")
  foreach(part IN LISTS parts)
    file(READ "${FOLDER}/${part}" more HEX)
    string(APPEND bytes "${more}")
  endforeach()
  # Byte by byte, as a string literal need not be longer than 64 KiB.
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND code "constexpr char kFile${number}[] = {${bytes}};\n")
  string(APPEND table "{\"${name}\", {kFile${number}, sizeof kFile${number}}},\n")
  math(EXPR number "${number} + 1")
endforeach()
string(APPEND code "${table}};\n}  // namespace\nconst std::span<const chokepoint::service::Asset> ${SYMBOL}(kFiles);\n}\n")
file(WRITE "${OUTPUT}" "${code}")
