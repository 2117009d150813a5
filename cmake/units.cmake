# SPDX-License-Identifier: Apache-2.0
# Unity builds: files of a room are compiled as one unit, so that their headers are read once. The whole program then
# compiles in a third of the time.
#
# Which unit a file belongs to depends on its name alone, and on the number of units of its room, which doubles when
# they would have more than 24 files on average. So a new file recompiles its unit and not those of its neighbours.
# A unit includes by paths from the root of the repository, so that ccache knows it again in another clone.
#
# Names in anonymous namespaces are therefore unique per room: a folder of core or of tests/unit with the folders in it,
# or any other folder.
include_guard()

# Replaces the sources of a target by units in the build folder. Files of a room that have the same options of their own
# form units of their own; those with definitions of their own, or that do not want the precompiled header, are compiled
# by themselves. These properties are set before this is called.
function(pipewright_compile_together target)
  if(NOT PIPEWRIGHT_TOGETHER)
    return()
  endif()
  get_target_property(files ${target} SOURCES)
  set(alone)
  set(names)
  foreach(file ${files})
    get_source_file_property(options ${file} COMPILE_OPTIONS)
    get_source_file_property(definitions ${file} COMPILE_DEFINITIONS)
    get_source_file_property(without_header ${file} SKIP_PRECOMPILE_HEADERS)
    if(definitions OR without_header)
      list(APPEND alone ${file})
      continue()
    endif()
    cmake_path(ABSOLUTE_PATH file)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(REGEX MATCH "^(core|tests/unit)/[^/]+" folder ${file})
    if(NOT folder)
      cmake_path(GET file PARENT_PATH folder)
    endif()
    if(NOT options)
      set(options "")
      if(folder IN_LIST PIPEWRIGHT_WITHOUT_LOOPS)
        set(options "$<$<CONFIG:Release>:-Og>")
      endif()
      string(REPLACE "/" "_" unit "${folder}")
    else()
      string(MAKE_C_IDENTIFIER "${folder}${options}" unit)
    endif()
    list(APPEND names ${unit})
    set(folder_of_${unit} ${folder})
    set(options_of_${unit} "${options}")
    list(APPEND files_of_${unit} ${file})
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(units)
  foreach(unit ${names})
    list(LENGTH files_of_${unit} count)
    set(groups 1)
    while(count GREATER 24)
      math(EXPR groups "${groups} * 2")
      math(EXPR count "${count} / 2")
    endwhile()
    foreach(file ${files_of_${unit}})
      string(MD5 digest ${file})
      string(SUBSTRING ${digest} 0 6 digest)
      math(EXPR group "0x${digest} % ${groups}")
      string(APPEND text_of_${unit}_${group} "#include \"${file}\"\n")
    endforeach()
    math(EXPR last "${groups} - 1")
    foreach(group RANGE ${last})
      if(DEFINED text_of_${unit}_${group})
        set(file ${PROJECT_BINARY_DIR}/units/${target}/${unit}_${group}.cpp)
        file(CONFIGURE OUTPUT ${file} @ONLY CONTENT
          "#pragma GCC diagnostic ignored \"-Wshadow\"  // a local of one file may have the name of a helper of another\n${text_of_${unit}_${group}}")
        list(APPEND units ${file})
        set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${options_of_${unit}}")
      endif()
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${units};${alone}")
endfunction()
