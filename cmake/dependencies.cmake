# SPDX-License-Identifier: Apache-2.0
# Third-party libraries, all from the distribution's archive. Static or header-only, so that the program needs only glibc.
include(link_dependencies)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(CHOKEPOINT_YAML_INCLUDE yaml-cpp/yaml.h REQUIRED)
find_path(CHOKEPOINT_PUGIXML_INCLUDE pugixml.hpp REQUIRED)
find_path(CHOKEPOINT_TOML_INCLUDE toml++/toml.h)
find_path(CHOKEPOINT_ZLIB_INCLUDE zlib.h REQUIRED)
find_path(CHOKEPOINT_ZSTD_INCLUDE zstd.h REQUIRED)
find_path(CHOKEPOINT_SQLITE_INCLUDE sqlite3.h REQUIRED)
# isa-l has no static library in the distributions: its header is needed to build, its library opened where present.
find_path(CHOKEPOINT_ISAL_INCLUDE isa-l/igzip_lib.h)
find_path(CHOKEPOINT_BEAST_INCLUDE boost/beast.hpp)
if(NOT CHOKEPOINT_BEAST_INCLUDE)
  message(STATUS "Boost.Beast not found (libboost-dev): chokepoint serve is left out")
endif()
get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)

# {fmt} compiled once (src/base/fmt_implementation.cpp) where that works with the installed version, else header-only.
if(NOT DEFINED CHOKEPOINT_COMPILED_FMT)
  try_compile(CHOKEPOINT_COMPILED_FMT ${PROJECT_BINARY_DIR}/fmt_check
    SOURCES ${PROJECT_SOURCE_DIR}/cmake/fmt_check.cpp ${PROJECT_SOURCE_DIR}/src/base/fmt_implementation.cpp
    CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${fmt_include}" CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON)
  message(STATUS "Compiled {fmt} ${fmt_VERSION}: ${CHOKEPOINT_COMPILED_FMT}")
endif()

# What only our own .cpp files see; the public headers need none of it.
add_library(chokepoint_private INTERFACE)
target_include_directories(chokepoint_private SYSTEM INTERFACE
  ${fmt_include} ${CHOKEPOINT_YAML_INCLUDE} ${CHOKEPOINT_PUGIXML_INCLUDE})
target_compile_definitions(chokepoint_private INTERFACE $<$<NOT:$<BOOL:${CHOKEPOINT_COMPILED_FMT}>>:FMT_HEADER_ONLY=1>)
target_link_libraries(chokepoint_private INTERFACE nlohmann_json::nlohmann_json)
if(CHOKEPOINT_ISAL_INCLUDE)
  target_compile_definitions(chokepoint_private INTERFACE CHOKEPOINT_ISAL=1)
else()
  message(STATUS "isa-l not found (libisal-dev): gzip goes through zlib, at less than half the speed")
endif()
if(NOT CHOKEPOINT_TOML_INCLUDE)
  message(STATUS "toml++ not found (libtomlplusplus-dev): torchtitan's TOML files cannot be read")
endif()
