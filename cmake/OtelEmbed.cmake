# SPDX-License-Identifier: Apache-2.0
#
# Writes files as constant C strings: cmake -DOUT=file.c -DHEADER=a.h -DNAMES="name;..." -DFILES="path;..."
# -P OtelEmbed.cmake. A comment at the beginning of a file stays where it is.
set(source "/* Made by cmake/OtelEmbed.cmake. */\n#include \"${HEADER}\"\n")
foreach(name path IN ZIP_LISTS NAMES FILES)
    file(READ "${path}" bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND source "const char ${name}[] = {${bytes}0};\n")
endforeach()
file(WRITE "${OUT}" "${source}")
