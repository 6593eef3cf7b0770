# SPDX-License-Identifier: Apache-2.0
# The layer check finds each kind of violation in a small tree made for it, and passes the tree without them.
#   cmake -DWORK_DIR=... -P tests/layers/check_test.cmake
set(spdx "// SPDX-License-Identifier: Apache-2.0\n")

function(expect_check outcome pattern)
  execute_process(COMMAND ${CMAKE_COMMAND} -DROOT=${WORK_DIR} -P ${CMAKE_CURRENT_LIST_DIR}/check.cmake
                  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(outcome STREQUAL "passes" AND NOT status EQUAL 0)
    message(SEND_ERROR "expected to pass, got: ${output}")
  elseif(outcome STREQUAL "fails" AND status EQUAL 0)
    message(SEND_ERROR "expected to fail with '${pattern}', but it passed")
  elseif(NOT output MATCHES "${pattern}")
    message(SEND_ERROR "expected '${pattern}', got: ${output}")
  endif()
endfunction()

# Adds one file to the sound tree, expects the violation, takes the file away.
function(expect_violation file text pattern)
  file(WRITE ${WORK_DIR}/${file} "${text}")
  expect_check(fails "${pattern}")
  file(REMOVE ${WORK_DIR}/${file})
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
set(once "${spdx}#pragma once\n")
file(WRITE ${WORK_DIR}/include/chokepoint/base/units.hpp "${once}#include <string>\n#include <tl/expected.hpp>\n")
file(WRITE ${WORK_DIR}/include/chokepoint/plan/plan.hpp "${once}#include <chokepoint/base/units.hpp>\n")
file(WRITE ${WORK_DIR}/include/chokepoint/validate/validate.hpp "${once}")
file(WRITE ${WORK_DIR}/src/plan/plan.cpp "${spdx}#include <chokepoint/plan/plan.hpp>\n#include \"search.hpp\"\n")
expect_check(passes "keep the layers")

expect_violation(src/base/x.cpp "${spdx}#include <chokepoint/plan/plan.hpp>\n" "base \\(layer 0\\) may not include plan")
expect_violation(src/calibrate/x.cpp "${spdx}#include <chokepoint/plan/plan.hpp>\n" "calibrate .* may not include plan")
expect_violation(src/plan/x.cpp "${spdx}#include \"../base/x.hpp\"\n" "own module's folder")
expect_violation(src/plan/x.cpp "${spdx}#include <chokepoint/base/gone.hpp>\n" "not in include/")
expect_violation(src/other/x.cpp "${spdx}" "module other is not in cmake/layers.cmake")
expect_violation(src/plan/x.cpp "int x;\n" "has no line 'SPDX")
expect_violation(src/plan/x.hpp "${spdx}" "has no #pragma once")
expect_violation(include/chokepoint/plan/x.hpp "${once}#include <fmt/format.h>\n" "only installed headers")
expect_violation(include/chokepoint/plan/x.hpp "${once}#include \"search.hpp\"\n" "only installed headers")
string(REPEAT "\n" 800 long)
expect_violation(src/plan/x.cpp "${spdx}${long}" "801 lines, at most 700")
string(CONCAT machine_path "/ho" "me/somebody/data")
expect_violation(src/plan/x.cpp "${spdx}// ${machine_path}\n" "names a path of one machine")
