#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs a build of otel-c beside it and runs the black-box suite against what was installed.
#
#   tests/blackbox/run.sh BUILD [CTEST-ARGUMENT...]     for example build-dev -R settings
#
# The prefix is BUILD/blackbox/prefix, the suite's own build BUILD/blackbox/build.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=$(realpath "${1:?the build tree}")
shift
prefix=$build/blackbox/prefix suite=$build/blackbox/build

cmake --install "$build" --prefix "$prefix" >"$build/blackbox-install.log" ||
    { tail "$build/blackbox-install.log" >&2; exit 1; }
cmake -S tests/blackbox -B "$suite" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
    >"$build/blackbox-configure.log" ||
    { tail "$build/blackbox-configure.log" >&2; exit 1; }
cmake --build "$suite" >"$build/blackbox-build.log" || { cat "$build/blackbox-build.log" >&2; exit 1; }
cd "$suite"
exec ctest --output-on-failure -j "$((2 * $(nproc)))" "$@" # most tests wait
