# SPDX-License-Identifier: Apache-2.0
#
# Components (directories of sources, compiled once) and libraries made of them.
#
#   otel_component(NAME SOURCES file... [GENERATED])
#   otel_library(NAME COMPONENTS name... [REQUIRES library...] [LIBRARIES lib...])
#   otel_inside()
#
# A library NAME gives the targets otel::NAME, which is shared if otel_kinds has that, and
# otel::NAME_static. A shared one exports what its version script cmake/<output>.map names. A static one is a single
# relocatable object in which everything hidden is local: nothing of ours but otel_* and
# the lent oteli_* can clash with the names of a program. otel-inside, made last, is every component in one archive with
# nothing made local: for tests, tools and benchmarks, which see the inside.

set_property(GLOBAL PROPERTY OTEL_COMPONENTS "")

# What is made local in an object of a static library (OneObject.cmake) has to be machine code, also
# in a project that is optimised when it is linked.
set(CMAKE_INTERPROCEDURAL_OPTIMIZATION OFF)

function(otel_component name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "GENERATED" "" "SOURCES")
    add_library(otel-objects-${name} OBJECT ${arg_SOURCES})
    target_compile_options(otel-objects-${name} PRIVATE -fno-lto)
    set_target_properties(otel-objects-${name} PROPERTIES
        POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
    if(arg_GENERATED)
        target_link_libraries(otel-objects-${name} PRIVATE otel-flags)
        target_compile_options(otel-objects-${name} PRIVATE -w)
        set_target_properties(otel-objects-${name} PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
    else()
        target_link_libraries(otel-objects-${name} PRIVATE otel-warnings)
    endif()
    set_property(GLOBAL APPEND PROPERTY OTEL_COMPONENTS ${name})
endfunction()

# What the shared libraries are linked with. -Bsymbolic lets the linker turn the way
# through the global offset table, which exported names have, into direct access for the
# library that defines them, but for variables of the public headers. Sanitizers of clang leave symbols open that the program's
# runtime fills in.
set(otel_shared_link_options -Wl,-Bsymbolic
    "LINKER:--dynamic-list=${PROJECT_SOURCE_DIR}/cmake/public-data.list" -Wl,--gc-sections -Wl,--as-needed -Wl,-z,relro
    -Wl,-z,now)
if(NOT OTEL_SANITIZE AND NOT OTEL_BUILD_FUZZERS)
    list(APPEND otel_shared_link_options -Wl,--no-undefined)
endif()

function(otel_library name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMPONENTS;REQUIRES;LIBRARIES")
    if(name STREQUAL "otel")
        set(output otel)
    else()
        set(output otel-${name})
    endif()
    set(objects "")
    foreach(component IN LISTS arg_COMPONENTS)
        list(APPEND objects $<TARGET_OBJECTS:otel-objects-${component}>)
    endforeach()

    add_library(${output}-shared SHARED ${objects})
    # An archive cannot depend on a file that is no source: an empty source does for it.
    set(map "${CMAKE_CURRENT_BINARY_DIR}/${output}.map")
    configure_file("${PROJECT_SOURCE_DIR}/cmake/${output}.map" "${map}" @ONLY)
    set(empty "${CMAKE_CURRENT_BINARY_DIR}/${output}-map.c")
    file(CONFIGURE OUTPUT "${empty}" CONTENT "extern int otel_nothing;\n")
    set_source_files_properties("${empty}" PROPERTIES OBJECT_DEPENDS "${map}")
    add_library(${output}-static STATIC ${objects} "${empty}")
    target_compile_options(${output}-static PRIVATE -fno-lto)
    add_library(otel::${name} ALIAS ${output}-${otel_kind})
    add_library(otel::${name}_static ALIAS ${output}-static)
    set_target_properties(${output}-shared PROPERTIES EXPORT_NAME ${name}
        VERSION ${PROJECT_VERSION} SOVERSION ${otel_soversion} BUILD_RPATH_USE_ORIGIN ON)
    set_target_properties(${output}-static PROPERTIES EXPORT_NAME ${name}_static)

    foreach(kind shared static)
        set_target_properties(${output}-${kind} PROPERTIES OUTPUT_NAME ${output}
            LINKER_LANGUAGE C)
        if(NOT kind IN_LIST otel_kinds AND NOT OTEL_BUILD_TESTING)
            set_target_properties(${output}-${kind} PROPERTIES EXCLUDE_FROM_ALL ON)
        endif()
        target_include_directories(${output}-${kind} PUBLIC
            $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
        target_link_libraries(${output}-${kind} PRIVATE Threads::Threads)
        foreach(other IN LISTS arg_REQUIRES)
            if(NOT other STREQUAL "otel")
                string(PREPEND other "otel-")
            endif()
            target_link_libraries(${output}-${kind} PUBLIC ${other}-${kind})
        endforeach()
        # Installed, a dependency is known by its name: its place is the consumer's matter
        # (otelConfig.cmake.in).
        foreach(library IN LISTS arg_LIBRARIES)
            string(TOUPPER "OTEL_${library}_LIBRARY" path)
            string(REPLACE "-" "_" path "${path}")
            set(installed ${library})
            if(library STREQUAL "curl")
                set(installed CURL::libcurl)
            elseif(library STREQUAL "z")
                set(installed ZLIB::ZLIB)
            endif()
            target_link_libraries(${output}-${kind} PRIVATE
                $<BUILD_INTERFACE:${${path}}> $<INSTALL_INTERFACE:${installed}>)
        endforeach()
    endforeach()

    # Readers outside find it in the symbols of the program that has it.
    if(name STREQUAL "api")
        target_link_options(${output}-static INTERFACE
            "LINKER:--export-dynamic-symbol=otel_thread_ctx_v1")
    endif()
    # otel_start calls it if it is there, and does not ask for it.
    if(name STREQUAL "config")
        target_link_options(${output}-static INTERFACE "LINKER:-u,otel_start_from_file")
    endif()
    target_link_options(${output}-shared PRIVATE ${otel_shared_link_options}
        "LINKER:--version-script=${map}")
    # Its functions are called from every function that was compiled for it; threads are
    # inside its trampolines, and its signal may still be on the way to them.
    if(name MATCHES "^(functions|profiling)$")
        target_link_options(${output}-shared PRIVATE -Wl,-z,nodelete)
    endif()
    set_property(TARGET ${output}-shared APPEND PROPERTY LINK_DEPENDS "${map}"
        "${PROJECT_SOURCE_DIR}/cmake/public-data.list")

    add_custom_command(TARGET ${output}-static POST_BUILD
        COMMAND "${CMAKE_COMMAND}" -DARCHIVE=$<TARGET_FILE:${output}-static>
            -DMAP=${map}
            -DLINKER=${CMAKE_LINKER} -DOBJCOPY=${CMAKE_OBJCOPY} -DAR=${CMAKE_AR}
            -P "${PROJECT_SOURCE_DIR}/cmake/OneObject.cmake"
        VERBATIM)
endfunction()

function(otel_inside)
    get_property(components GLOBAL PROPERTY OTEL_COMPONENTS)
    set(objects "")
    foreach(component IN LISTS components)
        list(APPEND objects $<TARGET_OBJECTS:otel-objects-${component}>)
    endforeach()
    add_library(otel-inside STATIC EXCLUDE_FROM_ALL ${objects})
    set_target_properties(otel-inside PROPERTIES LINKER_LANGUAGE C)
    target_link_libraries(otel-inside PUBLIC otel-warnings Threads::Threads)
    target_link_options(otel-inside INTERFACE "LINKER:--export-dynamic-symbol=otel_thread_ctx_v1")
    if(OTEL_WITH_OTLP)
        target_link_libraries(otel-inside PUBLIC ${OTEL_CURL_LIBRARY} ${OTEL_Z_LIBRARY})
    endif()
    if(OTEL_HAVE_PROTO)
        target_link_libraries(otel-inside PUBLIC ${OTEL_PROTOBUF_C_LIBRARY})
    endif()
    if(OTEL_HAVE_ZSTD)
        target_link_libraries(otel-inside PUBLIC ${OTEL_ZSTD_LIBRARY})
    endif()
    if(OTEL_HAVE_FUNCTIONS)
        target_link_libraries(otel-inside PUBLIC ${OTEL_DW_LIBRARY} ${OTEL_ELF_LIBRARY})
    endif()
    if(OTEL_HAVE_CONFIG)
        target_link_libraries(otel-inside PUBLIC ${OTEL_FYAML_LIBRARY})
    endif()
endfunction()
