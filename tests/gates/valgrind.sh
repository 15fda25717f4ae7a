#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# valgrind.sh PROGRAM [WORD...]: runs it under valgrind. Wrong are errors of memory and anything
# that is still allocated when the program has ended.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need valgrind

exec valgrind --quiet --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all \
    --error-exitcode=9 "$@"
