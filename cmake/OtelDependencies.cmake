# SPDX-License-Identifier: Apache-2.0
#
# Finds what the libraries need, and says which Debian package brings it when it is
# not there. Sets OTEL_<NAME>_LIBRARY and OTEL_INCLUDE_DIRS; makes no targets, so that
# nothing of ours leaks into a project that adds this directory.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# otel_need(NAME header library package): `library` may be "-" for headers alone.
function(otel_need name header library package)
    find_path(OTEL_${name}_INCLUDE_DIR ${header})
    mark_as_advanced(OTEL_${name}_INCLUDE_DIR)
    if(NOT OTEL_${name}_INCLUDE_DIR)
        message(FATAL_ERROR "otel-c needs ${header} (on Debian: apt install ${package})")
    endif()
    if(NOT library STREQUAL "-")
        find_library(OTEL_${name}_LIBRARY ${library})
        mark_as_advanced(OTEL_${name}_LIBRARY)
        if(NOT OTEL_${name}_LIBRARY)
            message(FATAL_ERROR "otel-c needs lib${library} (on Debian: apt install ${package})")
        endif()
    endif()
    if(NOT OTEL_${name}_INCLUDE_DIR IN_LIST CMAKE_C_IMPLICIT_INCLUDE_DIRECTORIES)
        list(APPEND OTEL_INCLUDE_DIRS "${OTEL_${name}_INCLUDE_DIR}")
        set(OTEL_INCLUDE_DIRS "${OTEL_INCLUDE_DIRS}" PARENT_SCOPE)
    endif()
endfunction()

otel_need(CK ck_pr.h - libck-dev)
if(OTEL_WITH_OTLP)
    otel_need(CURL curl/curl.h curl libcurl4-openssl-dev)
    otel_need(PROTOBUF_C protobuf-c/protobuf-c.h protobuf-c libprotobuf-c-dev)
endif()
if(OTEL_BUILD_TOOLS OR OTEL_BUILD_EXAMPLES)
    otel_need(MICROHTTPD microhttpd.h microhttpd libmicrohttpd-dev)
endif()
if(BUILD_TESTING)
    otel_need(CMOCKA cmocka.h cmocka libcmocka-dev)
endif()
