# SPDX-License-Identifier: Apache-2.0
#
# Programs for AArch64 on a machine of another architecture: compiled by Debian's cross compiler,
# run by QEMU's emulator of programs. What that needs, scripts/setup.sh --aarch64 brings. Sets
# OTEL_HAVE_AARCH64; where it is OFF, the functions make nothing.
#
#   otel_aarch64_program(NAME SOURCES file... [OPTIONS option...] [LINK option...])
#   otel_aarch64_test(NAME SOURCES file... [OPTIONS option...] [LINK option...] [ARGUMENTS word...])
#
# A program is NAME-aarch64 in the current build directory, made by the target aarch64-NAME, of C,
# C++ and assembly with our warnings, found by "name.h" from the repository root and <otel/name.h>,
# and with cmocka. A test aarch64.NAME runs it. OPTIONS go to the compiler, LINK to the linker
# behind the sources. gdb, perf events and ptrace are not emulated.

# On such a machine the tests themselves are what these stand for; and sanitizers are for the host.
set(OTEL_HAVE_AARCH64 OFF)
set(otel_want_aarch64 ON)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64" OR NOT OTEL_BUILD_TESTING OR OTEL_SANITIZE)
    set(otel_want_aarch64 OFF)
endif()

if(DEFINED ENV{OTEL_C_CACHE})
    set(otel_cache "$ENV{OTEL_C_CACHE}")
elseif(DEFINED ENV{XDG_CACHE_HOME})
    set(otel_cache "$ENV{XDG_CACHE_HOME}/otel-c")
else()
    set(otel_cache "$ENV{HOME}/.cache/otel-c")
endif()
set(otel_release "")
if(EXISTS /etc/os-release)
    file(STRINGS /etc/os-release otel_release REGEX "^VERSION_CODENAME=")
    string(REPLACE "VERSION_CODENAME=" "" otel_release "${otel_release}")
endif()
file(SHA256 "${PROJECT_SOURCE_DIR}/scripts/aarch64-packages.txt" otel_packages)
string(SUBSTRING "${otel_packages}" 0 12 otel_packages)
set(otel_aarch64_root "${otel_cache}/aarch64-${otel_release}-${otel_packages}/usr")

find_program(OTEL_AARCH64_C_COMPILER aarch64-linux-gnu-gcc)
find_program(OTEL_AARCH64_CXX_COMPILER aarch64-linux-gnu-g++)
find_program(OTEL_AARCH64_EMULATOR qemu-aarch64)
mark_as_advanced(OTEL_AARCH64_C_COMPILER OTEL_AARCH64_CXX_COMPILER OTEL_AARCH64_EMULATOR)
if(NOT otel_want_aarch64)
    # Nothing is missing.
elseif(OTEL_AARCH64_C_COMPILER AND OTEL_AARCH64_CXX_COMPILER AND OTEL_AARCH64_EMULATOR
        AND EXISTS "${otel_aarch64_root}/include/ck_md.h")
    set(OTEL_HAVE_AARCH64 ON)
else()
    message(STATUS "No tests of AArch64: no compiler for it (scripts/setup.sh --aarch64)")
endif()

set(otel_aarch64_options -O2 -g -pthread -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Wconversion
    -Wshadow -Wvla "-I${PROJECT_SOURCE_DIR}/include" "-I${PROJECT_SOURCE_DIR}"
    -isystem "${otel_aarch64_root}/include")
if(OTEL_WERROR)
    list(APPEND otel_aarch64_options -Werror)
endif()
set(otel_aarch64_run "${OTEL_AARCH64_EMULATOR}" -L /usr/aarch64-linux-gnu)

function(otel_aarch64_program name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;OPTIONS;LINK")
    if(NOT OTEL_HAVE_AARCH64)
        return()
    endif()
    set(program "${CMAKE_CURRENT_BINARY_DIR}/${name}-aarch64")
    set(linker "${OTEL_AARCH64_C_COMPILER}")
    set(objects "")
    file(MAKE_DIRECTORY "${program}.d")
    foreach(source IN LISTS arg_SOURCES)
        cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
        string(REPLACE "${PROJECT_SOURCE_DIR}/" "" object "${source}")
        string(REGEX REPLACE "[^A-Za-z0-9_.-]" "_" object "${object}")
        set(object "${program}.d/${object}.o")
        set(compiler "${OTEL_AARCH64_C_COMPILER}")
        set(language -std=c11 -Wstrict-prototypes -Wmissing-prototypes)
        if(source MATCHES "\\.(cc|cpp|cxx)$")
            set(compiler "${OTEL_AARCH64_CXX_COMPILER}")
            set(linker "${compiler}")
            set(language -std=c++17)
        elseif(source MATCHES "\\.S$")
            set(language "")
        endif()
        add_custom_command(OUTPUT "${object}" DEPENDS "${source}" DEPFILE "${object}.d"
            COMMAND "${compiler}" ${language} ${otel_aarch64_options} ${arg_OPTIONS}
                -MD -MF "${object}.d" -MT "${object}" -c "${source}" -o "${object}"
            COMMENT "Compiling ${object}" VERBATIM)
        list(APPEND objects "${object}")
    endforeach()
    set(directory "${otel_aarch64_root}/lib/aarch64-linux-gnu")
    set(libraries "-L${directory}" "-Wl,-rpath,${directory}" -Wl,--as-needed -lcmocka)
    if(arg_LINK MATCHES "-static")
        set(libraries "") # There is only a shared one.
    endif()
    add_custom_command(OUTPUT "${program}" DEPENDS ${objects}
        COMMAND "${linker}" -pthread -o "${program}" ${objects} ${arg_LINK} ${libraries}
        COMMENT "Linking ${program}" VERBATIM)
    add_custom_target(aarch64-${name} ALL DEPENDS "${program}")
endfunction()

function(otel_aarch64_test name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;OPTIONS;LINK;ARGUMENTS")
    if(NOT OTEL_HAVE_AARCH64)
        return()
    endif()
    otel_aarch64_program(${name} SOURCES ${arg_SOURCES} OPTIONS ${arg_OPTIONS} LINK ${arg_LINK})
    add_test(NAME aarch64.${name} COMMAND ${otel_aarch64_run}
        "${CMAKE_CURRENT_BINARY_DIR}/${name}-aarch64" ${arg_ARGUMENTS})
    otel_describe_test(aarch64.${name} aarch64 600)
endfunction()
