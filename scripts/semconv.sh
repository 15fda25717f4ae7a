#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes include/otel/semconv.h and semconv_incubating.h from the published model of
# OpenTelemetry's semantic conventions, of the version below. Needs git, python3 and its yaml.
#
#   scripts/semconv.sh             write them
#   scripts/semconv.sh --check     say whether they are what would be written
#   scripts/semconv.sh --cached    say whether that can be said without fetching anything
#
# The model is fetched once, into ~/.cache/otel-c, from OTEL_SEMCONV_REPOSITORY if that is set.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=1.44.0
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=$(cache_dir)/semantic-conventions-$version
repository=${OTEL_SEMCONV_REPOSITORY:-https://github.com/open-telemetry/semantic-conventions}

if [[ ${1:-} == --cached ]]; then
    [[ -d $cache/model ]] && python3 -c 'import yaml' 2>/dev/null
    exit
fi
if [[ ! -d $cache/model ]]; then
    say "fetching semantic conventions $version"
    mkdir -p "${cache%/*}"
    rm -rf "$cache"
    git -c advice.detachedHead=false clone --quiet --depth 1 --branch "v$version" \
        "$repository" "$cache"
fi

if [[ ${1:-} != --check ]]; then
    PYTHONDONTWRITEBYTECODE=1 python3 "$root/scripts/semconv.py" "$cache/model" "$version" \
        "$root/include/otel"
    exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 "$root/scripts/semconv.py" "$cache/model" "$version" "$work"
for header in semconv.h semconv_incubating.h; do
    if ! cmp -s "$work/$header" "$root/include/otel/$header"; then
        die "include/otel/$header is not what this writes"
    fi
done
