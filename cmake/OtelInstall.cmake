# SPDX-License-Identifier: Apache-2.0
#
# Installs headers, libraries, the CMake package `otel` and the pkg-config files. All of
# it finds its parts from where it lies, so an installed tree can be moved.

include(CMakePackageConfigHelpers)

set(otel_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/otel")
set(otel_pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(DIRECTORY include/otel DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    COMPONENT dev FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

# The documents, examples and modules lie to one another as they do in the source tree.
install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT doc)
install(DIRECTORY docs examples integrations DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT doc
    PATTERN CMakeLists.txt EXCLUDE)

set(otel_targets "")
foreach(kind IN LISTS otel_kinds)
    list(APPEND otel_targets otel-api-${kind} otel-sdk-${kind})
    if(OTEL_WITH_OTLP)
        list(APPEND otel_targets otel-otlp-${kind} otel-${kind})
    endif()
    if(OTEL_HAVE_FUNCTIONS)
        list(APPEND otel_targets otel-functions-${kind})
    endif()
    if(OTEL_HAVE_CONFIG)
        list(APPEND otel_targets otel-config-${kind})
    endif()
    if(OTEL_HAVE_PROFILING)
        list(APPEND otel_targets otel-profiling-${kind})
    endif()
endforeach()
install(TARGETS ${otel_targets} EXPORT otel
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT dev
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev)
install(EXPORT otel NAMESPACE otel:: FILE otelTargets.cmake
    DESTINATION "${otel_cmake_dir}" COMPONENT dev)

# All of them: who installs, and builds nothing else.
add_custom_target(otel-libraries DEPENDS ${otel_targets})

set(otel_static_only OFF)
if(otel_kinds STREQUAL "static")
    set(otel_static_only ON)
endif()
configure_package_config_file(cmake/otelConfig.cmake.in otelConfig.cmake
    INSTALL_DESTINATION "${otel_cmake_dir}" NO_SET_AND_CHECK_MACRO)
# Before 1.0 a new minor version may break its users.
write_basic_package_version_file(otelConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/otelConfig.cmake"
    "${PROJECT_BINARY_DIR}/otelConfigVersion.cmake"
    DESTINATION "${otel_cmake_dir}" COMPONENT dev)

# otel_pkgconfig(NAME DESCRIPTION requires libs_private)
#
# The libraries that ours need are in Libs.private by their names, not in
# Requires.private: that would ask users of the shared libraries for the development
# files of libcurl, and users of the static ones for static copies of everything that
# libcurl itself was built with. Who links all of it statically asks libcurl.pc too. Where
# only static libraries are built, what they need is in Libs: no --static is needed.
function(otel_pkgconfig OTEL_PC_NAME OTEL_PC_DESCRIPTION OTEL_PC_REQUIRES OTEL_PC_LIBS_PRIVATE)
    if(OTEL_PC_NAME STREQUAL "otel-api")
        # Of a static library; with the shared one there is no such symbol to export.
        string(APPEND OTEL_PC_LIBS_PRIVATE " -Wl,--export-dynamic-symbol=otel_thread_ctx_v1")
    endif()
    set(OTEL_PC_LIBS_ALWAYS "")
    if(otel_kinds STREQUAL "static")
        set(OTEL_PC_LIBS_ALWAYS " ${OTEL_PC_LIBS_PRIVATE}")
        set(OTEL_PC_LIBS_PRIVATE "")
    endif()
    configure_file(cmake/otel.pc.in "${PROJECT_BINARY_DIR}/${OTEL_PC_NAME}.pc" @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${OTEL_PC_NAME}.pc" DESTINATION "${otel_pc_dir}"
        COMPONENT dev)
endfunction()

function(otel_pkgconfig_path result directory)
    if(IS_ABSOLUTE "${directory}")
        set(${result} "${directory}" PARENT_SCOPE)
    else()
        set(${result} "\${prefix}/${directory}" PARENT_SCOPE)
    endif()
endfunction()

if(IS_ABSOLUTE "${otel_pc_dir}")
    set(OTEL_PC_PREFIX "${CMAKE_INSTALL_PREFIX}")
else()
    file(RELATIVE_PATH up "/${otel_pc_dir}" "/")
    string(REGEX REPLACE "/$" "" up "${up}")
    set(OTEL_PC_PREFIX "\${pcfiledir}/${up}")
endif()
otel_pkgconfig_path(OTEL_PC_LIBDIR "${CMAKE_INSTALL_LIBDIR}")
otel_pkgconfig_path(OTEL_PC_INCLUDEDIR "${CMAKE_INSTALL_INCLUDEDIR}")

set(v ${PROJECT_VERSION})
otel_pkgconfig(otel-api "OpenTelemetry for C: the tracing API" "" "-pthread")
otel_pkgconfig(otel-sdk "OpenTelemetry for C: the SDK" "otel-api = ${v}" "-pthread")
if(OTEL_WITH_OTLP)
    set(otlp_needs "-lcurl -lz")
    if(OTEL_HAVE_ZSTD)
        string(APPEND otlp_needs " -lzstd")
    endif()
    otel_pkgconfig(otel-otlp "OpenTelemetry for C: the OTLP exporter" "otel-sdk = ${v}"
        "${otlp_needs}")
    otel_pkgconfig(otel "OpenTelemetry for C: tracing, all of it" "otel-otlp = ${v}" "")
endif()
if(OTEL_HAVE_FUNCTIONS)
    otel_pkgconfig(otel-functions "OpenTelemetry for C: a span for every function"
        "otel-sdk = ${v}" "-ldw -lelf")
endif()
if(OTEL_HAVE_CONFIG)
    otel_pkgconfig(otel-config "OpenTelemetry for C: start from a YAML file" "otel = ${v}"
        "-Wl,-u,otel_start_from_file -lfyaml")
endif()
if(OTEL_HAVE_PROFILING)
    otel_pkgconfig(otel-profiling "OpenTelemetry for C: a profiler that knows spans"
        "otel-otlp = ${v}" "-lz -pthread")
endif()
