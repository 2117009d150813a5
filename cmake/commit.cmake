# SPDX-License-Identifier: Apache-2.0
# Writes OUT, a header with the commit of SOURCE, as in "0123456789ab-dirty", or "" where that is not known. A header
# that says it already keeps its time, so that nothing is compiled again.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed OR NOT commit MATCHES "^[0-9a-f]+(-dirty)?$")
  set(commit)
endif()
set(text "// SPDX-License-Identifier: Apache-2.0\n#define PIPEWRIGHT_COMMIT \"${commit}\"\n")
set(before)
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT text STREQUAL before)
  file(WRITE ${OUT} "${text}")
endif()
