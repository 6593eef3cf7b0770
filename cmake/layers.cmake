# SPDX-License-Identifier: Apache-2.0
# The layer table: the single place that says which module may include which. tests/layers holds #include lines
# against it, and chokepoint_module() creates the targets from it.
#
#   layer  module      answers
set(CHOKEPOINT_LAYERS
  "0 base"        # results, errors with positions, units, files, strict YAML
  "1 topology"    # devices, links, hosts, fabrics, paths; no file formats
  "1 hardware"    # catalogue of accelerators, links, NICs, host and fabric templates
  "1 model"       # transformer description -> parameters, operators, FLOPs
  "2 wiring"      # what tools print, cluster YAML -> values of each format, topology
  "2 trace"       # Kineto, Nsight, flight recorder, logs -> columns
  "2 compute"     # operators on an accelerator -> time
  "2 flow"        # transfers alive at the same time on shared links -> rates, times
  "3 assemble"    # files of one cluster -> one graph; exports
  "3 measure"     # a machine's own kernels and network: probes, their tables
  "3 parallel"    # job, strategy, memory per rank
  "3 collective"  # algorithm, protocol, group on a wiring -> time
  "4 frameworks"  # settings of training frameworks <-> job and strategy
  "4 simulate"    # one training step -> time, bill, memory
  "5 job"         # job file, options, framework settings -> a job
  "5 engine"      # step graph on shared links, rank by rank -> timeline
  "6 plan"        # enumerate, prune, rank
  "6 diagnose"    # measured timelines: bill, wait and wire, causes
  "6 findings"    # what is wrong with the wiring, and what it costs a job
  "6 calibrate"   # measured times -> parameters with uncertainty
  "7 validate"    # published measurements against predictions; constants left out
  "7 whatif"      # changes and purchases: step time, money, payback
  "8 report"      # results -> text, JSON, SVG, HTML
  "9 commands"    # options in, library call, text out
  "10 service"    # requests in JSON, answers in JSON; HTTP
  "11 cli"        # the program
)

# chokepoint_module(NAME SOURCES ... [TESTS ...]): an object library of one module, plus its unit tests.
# Dependencies follow from the table: a module sees every module of a lower layer.
function(chokepoint_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS" ${ARGN})
  add_library(chokepoint_${name} OBJECT ${ARG_SOURCES})
  target_include_directories(chokepoint_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(chokepoint_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(chokepoint_${name} PUBLIC chokepoint_third_party PRIVATE chokepoint_private)
  chokepoint_compile_options(chokepoint_${name})
  set_property(GLOBAL APPEND PROPERTY CHOKEPOINT_MODULES ${name})
  foreach(test IN LISTS ARG_TESTS)
    set_property(GLOBAL APPEND PROPERTY CHOKEPOINT_TEST_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/${test})
  endforeach()
endfunction()
