# discover: asks a test program for its tests and writes them for ctest under the very names that --gtest_filter takes.
# gtest_discover_tests would put the C++ type of each typed test into its name. In: PROGRAM, PREFIX, LABELS; out: FILE.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed TIMEOUT 120 COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE " +#[^\n]*" "" listed "${listed}")
string(REPLACE "\n" ";" lines "${listed}")

set(tests "")
foreach(line IN LISTS lines)
  if(line MATCHES "^[^ ]+\\.$")
    set(suite ${line})
  elseif(line MATCHES "^  (.+)$")
    set(name ${suite}${CMAKE_MATCH_1})
    if(name MATCHES "DISABLED_")
      continue()
    endif()
    set(test "[[${PREFIX}${name}]]")
    string(APPEND tests
      "add_test(${test} [[${PROGRAM}]] [[--gtest_filter=${name}]])\n"
      "set_tests_properties(${test} PROPERTIES TIMEOUT 300 SKIP_REGULAR_EXPRESSION [=[\\[  SKIPPED \\]]=]\n"
      "  FAIL_REGULAR_EXPRESSION [=[Running 0 tests]=] LABELS [[${LABELS}]])\n")
  endif()
endforeach()
if(tests STREQUAL "")
  message(FATAL_ERROR "${PROGRAM} lists no test")
endif()
file(WRITE ${FILE} "${tests}")
