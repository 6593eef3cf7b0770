# SPDX-License-Identifier: Apache-2.0
# Third-party libraries, all from the distribution's archive. Static or header-only, so that the program needs only glibc.
find_package(Threads REQUIRED)
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_path(CHOKEPOINT_EXPECTED_INCLUDE tl/expected.hpp REQUIRED)
find_path(CHOKEPOINT_YAML_INCLUDE yaml-cpp/yaml.h REQUIRED)
find_library(CHOKEPOINT_YAML_LIBRARY NAMES libyaml-cpp.a yaml-cpp REQUIRED)
find_path(CHOKEPOINT_PUGIXML_INCLUDE pugixml.hpp REQUIRED)
find_library(CHOKEPOINT_PUGIXML_LIBRARY NAMES libpugixml.a pugixml REQUIRED)

add_library(chokepoint_third_party INTERFACE)
target_include_directories(chokepoint_third_party SYSTEM INTERFACE
  ${CHOKEPOINT_EXPECTED_INCLUDE} ${CHOKEPOINT_YAML_INCLUDE} ${CHOKEPOINT_PUGIXML_INCLUDE})
target_link_libraries(chokepoint_third_party INTERFACE
  fmt::fmt-header-only nlohmann_json::nlohmann_json
  ${CHOKEPOINT_YAML_LIBRARY} ${CHOKEPOINT_PUGIXML_LIBRARY} Threads::Threads)
