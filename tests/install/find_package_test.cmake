# SPDX-License-Identifier: Apache-2.0
# Installs the build into an empty prefix, then configures, builds and runs a project that uses it.
#   cmake -DBUILD_DIR=... -DWORK_DIR=... -DCXX=... -DBUILD_TYPE=... -DGENERATOR=... -P tests/install/find_package_test.cmake
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK_DIR}/build -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=${BUILD_TYPE})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/consumer)
if(NOT output STREQUAL "50.0 GB/s\n")
  message(FATAL_ERROR "expected '50.0 GB/s', got: ${output}")
endif()
run(${WORK_DIR}/prefix/bin/chokepoint --version)
file(GLOB_RECURSE headers RELATIVE ${WORK_DIR}/prefix ${WORK_DIR}/prefix/include/*)
foreach(header IN LISTS headers)
  if(NOT header MATCHES "^include/chokepoint/[a-z]+/[a-z_]+\\.hpp$")
    message(FATAL_ERROR "installs what is no public header: ${header}")
  endif()
endforeach()
