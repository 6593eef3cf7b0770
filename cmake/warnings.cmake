# SPDX-License-Identifier: Apache-2.0
# Warnings are always on; -Werror only with CHOKEPOINT_WERROR (CI), so that a newer compiler does not stop a user.
option(CHOKEPOINT_WERROR "Treat warnings as errors" OFF)
set(CHOKEPOINT_SANITIZE "" CACHE STRING "Value for -fsanitize=, empty for none")
option(CHOKEPOINT_FUZZ "Build libFuzzer targets; Clang only, see the fuzz preset" OFF)

function(chokepoint_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion
                         $<$<BOOL:${CHOKEPOINT_WERROR}>:-Werror>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Both warn about correct code at -O2: the first about the union inside expected, optional and variant, the second
    # about std::string (GCC bug 105651). Clang and the sanitizers watch for the real thing.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized -Wno-restrict)
  endif()
  if(CHOKEPOINT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${CHOKEPOINT_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${CHOKEPOINT_SANITIZE})
  endif()
  if(CHOKEPOINT_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()
