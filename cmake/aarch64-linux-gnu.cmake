# SPDX-License-Identifier: Apache-2.0
#
# Toolchain of Debian's cross compiler for AArch64, with programs run by QEMU:
#
#   cmake --toolchain cmake/aarch64-linux-gnu.cmake -DOTEL_AARCH64_ROOT=DIRECTORY ...
#
# DIRECTORY is what scripts/setup.sh --aarch64 prints; libraries are looked for there.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_C_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES OTEL_AARCH64_ROOT)
set(CMAKE_FIND_ROOT_PATH "${OTEL_AARCH64_ROOT}" /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
