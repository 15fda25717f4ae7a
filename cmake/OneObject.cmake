# SPDX-License-Identifier: Apache-2.0
#
# Turns an archive of objects into an archive of one object in which every symbol is
# local that the version script of the shared library does not name either.
# Run as: cmake -DARCHIVE= -DMAP= -DLINKER= -DOBJCOPY= -DAR= -P OneObject.cmake

get_filename_component(name "${ARCHIVE}" NAME_WE)
set(object "${ARCHIVE}.d/${name}.o")
file(REMOVE_RECURSE "${ARCHIVE}.d")
file(MAKE_DIRECTORY "${ARCHIVE}.d")

function(run)
    execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(READ "${MAP}" map)
string(REGEX MATCHALL "\n +oteli?_[a-z0-9_*]+" names "${map}")
string(REGEX REPLACE "[; \n]+" "\n" names "${names}")
if(name STREQUAL "libotel-functions")
    string(APPEND names "\n__cyg_profile_func_*\n")
endif()
file(WRITE "${object}.names" "${names}")

run("${LINKER}" -r --whole-archive "${ARCHIVE}" -o "${object}")
# What is exported from a program is reached through a slot that is filled when it starts, and a
# static-pie cannot do that: the library's own name of it is another one (api/thread/context_record.c).
if(name STREQUAL "libotel-api")
    run("${OBJCOPY}" --redefine-sym otel_thread_ctx_v1=oteli_thread_ctx_own
        --redefine-sym oteli_thread_ctx_exported=otel_thread_ctx_v1 "${object}")
endif()
run("${OBJCOPY}" --localize-hidden --wildcard "--keep-global-symbols=${object}.names" "${object}")
file(REMOVE "${ARCHIVE}")
run("${AR}" rcsD "${ARCHIVE}" "${object}")
file(REMOVE_RECURSE "${ARCHIVE}.d")
