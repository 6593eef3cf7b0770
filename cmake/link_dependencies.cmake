# SPDX-License-Identifier: Apache-2.0
# What a program that links libchokepoint.a needs: installed beside the package's config file, and used by our own build.
# Static libraries first, so that a program needs only glibc.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_path(CHOKEPOINT_EXPECTED_INCLUDE tl/expected.hpp)
find_library(CHOKEPOINT_YAML_LIBRARY NAMES libyaml-cpp.a yaml-cpp)
find_library(CHOKEPOINT_PUGIXML_LIBRARY NAMES libpugixml.a pugixml)
find_library(CHOKEPOINT_ZLIB_LIBRARY NAMES libz.a z)
find_library(CHOKEPOINT_ZSTD_LIBRARY NAMES libzstd.a zstd)
find_library(CHOKEPOINT_SQLITE_LIBRARY NAMES libsqlite3.a sqlite3)
foreach(found CHOKEPOINT_EXPECTED_INCLUDE CHOKEPOINT_YAML_LIBRARY CHOKEPOINT_PUGIXML_LIBRARY CHOKEPOINT_ZLIB_LIBRARY
        CHOKEPOINT_ZSTD_LIBRARY CHOKEPOINT_SQLITE_LIBRARY)
  if(NOT ${found})
    message(FATAL_ERROR "chokepoint: ${found} not found; ./scripts/setup installs it "
                        "(Debian: libexpected-dev libyaml-cpp-dev libpugixml-dev zlib1g-dev libzstd-dev libsqlite3-dev)")
  endif()
endforeach()

if(NOT TARGET chokepoint_third_party)
  add_library(chokepoint_third_party INTERFACE)
  target_include_directories(chokepoint_third_party SYSTEM INTERFACE ${CHOKEPOINT_EXPECTED_INCLUDE})
  target_link_libraries(chokepoint_third_party INTERFACE
    ${CHOKEPOINT_YAML_LIBRARY} ${CHOKEPOINT_PUGIXML_LIBRARY} ${CHOKEPOINT_ZLIB_LIBRARY} ${CHOKEPOINT_ZSTD_LIBRARY}
    ${CHOKEPOINT_SQLITE_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS})
endif()
