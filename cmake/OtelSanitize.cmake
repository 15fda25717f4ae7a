# SPDX-License-Identifier: Apache-2.0
#
# OTEL_SANITIZE goes to every file, tests and examples included.
#
#   otel_watch_forks()    at the end, when all programs are known
#
# The locks of gcc's AddressSanitizer stay closed in a child that was forked while another thread
# held them, and a test that forks hangs now and then. Its runtime has functions that take and give
# back all of them, but does not export them: so it is linked statically, and programs get
# tests/support/asan_fork.c. Where the runtime takes care of forks itself they have other names.

set(otel_watches_forks FALSE)
if(OTEL_SANITIZE)
    add_compile_options(-fsanitize=${OTEL_SANITIZE} -fno-omit-frame-pointer
        -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${OTEL_SANITIZE})
endif()
if(OTEL_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    file(CONFIGURE OUTPUT asan_fork_main.c CONTENT "int main(void) { return 0; }\n")
    try_compile(OTEL_ASAN_FORK_LINKS "${CMAKE_CURRENT_BINARY_DIR}/asan_fork"
        SOURCES "${PROJECT_SOURCE_DIR}/tests/support/asan_fork.c"
            "${CMAKE_CURRENT_BINARY_DIR}/asan_fork_main.c"
        LINK_OPTIONS -fsanitize=address -static-libasan)
    set(otel_watches_forks ${OTEL_ASAN_FORK_LINKS})
endif()
if(otel_watches_forks)
    add_link_options(-static-libasan)
    add_library(otel-asan-fork OBJECT "${PROJECT_SOURCE_DIR}/tests/support/asan_fork.c")
    target_link_libraries(otel-asan-fork PRIVATE otel-warnings)
endif()

# What a program loads later has to find the runtime in the program.
function(otel_watch_forks_below directory)
    get_property(targets DIRECTORY "${directory}" PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
        get_target_property(type ${target} TYPE)
        if(type STREQUAL "EXECUTABLE")
            target_sources(${target} PRIVATE $<TARGET_OBJECTS:otel-asan-fork>)
            target_link_options(${target} PRIVATE "LINKER:--export-dynamic-symbol=__asan_*"
                "LINKER:--export-dynamic-symbol=__sanitizer_*")
        endif()
    endforeach()
    get_property(below DIRECTORY "${directory}" PROPERTY SUBDIRECTORIES)
    foreach(subdirectory IN LISTS below)
        otel_watch_forks_below("${subdirectory}")
    endforeach()
endfunction()

function(otel_watch_forks)
    if(otel_watches_forks)
        otel_watch_forks_below("${PROJECT_SOURCE_DIR}")
    endif()
endfunction()
