# SPDX-License-Identifier: Apache-2.0
# install(): the program, the library with its headers, and a package for find_package(chokepoint).
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/chokepoint)

install(TARGETS chokepoint_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET chokepoint_measure_mpi)
  install(TARGETS chokepoint_measure_mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS chokepoint EXPORT chokepointTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/chokepoint DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(EXPORT chokepointTargets NAMESPACE chokepoint:: DESTINATION ${package_dir})

configure_package_config_file(cmake/chokepointConfig.cmake.in ${PROJECT_BINARY_DIR}/chokepointConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/chokepointConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/chokepointConfig.cmake ${PROJECT_BINARY_DIR}/chokepointConfigVersion.cmake
              cmake/link_dependencies.cmake
        DESTINATION ${package_dir})
