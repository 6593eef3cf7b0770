# SPDX-License-Identifier: Apache-2.0
# chokepoint_embed(MODULE FILE...): compiles catalogue/FILE.yaml into the module as chokepoint::embedded::FILE.
function(chokepoint_embed module)
  foreach(name IN LISTS ARGN)
    set(input ${PROJECT_SOURCE_DIR}/catalogue/${name}.yaml)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_${name}.cpp)
    add_custom_command(OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DSYMBOL=${name}
              -P ${PROJECT_SOURCE_DIR}/cmake/embed_catalogue.cmake
      DEPENDS ${input} ${PROJECT_SOURCE_DIR}/cmake/embed_catalogue.cmake VERBATIM)
    target_sources(chokepoint_${module} PRIVATE ${output})
  endforeach()
endfunction()

# chokepoint_embed_text(MODULE FILE SYMBOL): compiles a text file beside the sources into the module as
# chokepoint::embedded::SYMBOL, a std::string_view.
function(chokepoint_embed_text module file symbol)
  set(input ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded_${symbol}.cpp)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${input} -DOUTPUT=${output} -DSYMBOL=${symbol}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake
    DEPENDS ${input} ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake VERBATIM)
  target_sources(chokepoint_${module} PRIVATE ${output})
endfunction()
