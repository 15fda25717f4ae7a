# SPDX-License-Identifier: Apache-2.0
#
# Flags as two interface targets: otel-flags for everything that is compiled here, and
# otel-warnings on top of it for what we wrote ourselves (generated code has none).

include(CheckCCompilerFlag)

add_library(otel-flags INTERFACE)
target_compile_definitions(otel-flags INTERFACE _GNU_SOURCE
    "OTELI_SOVERSION=\"${otel_soversion}\"")
target_include_directories(otel-flags INTERFACE "${PROJECT_SOURCE_DIR}/include"
    "${PROJECT_SOURCE_DIR}")
target_include_directories(otel-flags SYSTEM INTERFACE "${PROJECT_SOURCE_DIR}/proto"
    ${OTEL_INCLUDE_DIRS})
target_compile_options(otel-flags INTERFACE -ffunction-sections -fdata-sections)

# Clang takes it that allocating leaves errno alone, and removes the lines that put the
# program's errno back after an allocation has failed.
target_compile_options(otel-flags INTERFACE -fno-builtin-malloc -fno-builtin-calloc
    -fno-builtin-realloc -fno-builtin-aligned_alloc)

# Calls inside a library are bound when it is linked; calls out of it go straight
# through the table that -z now fills, without a stub. And whatever a project that contains
# this one says, our own functions are not traced.
foreach(flag -fno-semantic-interposition -fno-plt -fno-instrument-functions)
    string(MAKE_C_IDENTIFIER "OTEL_HAVE${flag}" have)
    check_c_compiler_flag(${flag} ${have})
    if(${have})
        target_compile_options(otel-flags INTERFACE ${flag})
    endif()
endforeach()

add_library(otel-warnings INTERFACE)
target_link_libraries(otel-warnings INTERFACE otel-flags)
target_compile_options(otel-warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
    -Wstrict-prototypes -Wmissing-prototypes -Wvla)
if(OTEL_WERROR)
    target_compile_options(otel-warnings INTERFACE -Werror)
endif()

if(OTEL_BUILD_FUZZERS)
    # The same code is the same program wherever the tree is: tests/fuzz/run.sh compares.
    add_compile_options(-fsanitize=fuzzer-no-link "-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.")
endif()
