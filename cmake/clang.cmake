# SPDX-License-Identifier: Apache-2.0
#
# Toolchain of the presets that need clang. OTEL_LLVM_VERSION in the environment chooses the version;
# without it, version 14 is preferred, as in tests/gates.
find_program(CMAKE_C_COMPILER NAMES "clang-$ENV{OTEL_LLVM_VERSION}" clang-14 clang REQUIRED)
