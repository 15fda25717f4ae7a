#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Trampolines in programs that are built in many ways: by both compilers, with link-time
# optimisation, statically, with protected control flow, in a shared library; and what is in the
# files then. The program (tests/support/trampolines_program.cc) throws, jumps and unwinds.
#
#   trampolines.sh native      gcc, clang and gdb
#   trampolines.sh aarch64     cross compiled, and run by QEMU
source "$(dirname "${BASH_SOURCE[0]}")/../gates/lib.sh"

readonly sources=(profiling/labels/trampolines.S profiling/labels/trampolines.c profiling/labels/trampolines_unwound.c tests/support/dead_records.c)
readonly flags=(-g -Iinclude -I. -D_GNU_SOURCE -pthread -Wall -Wextra -Werror)
run=() # what runs a program
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    printf 'trampolines.sh: %s\n' "$*" >&2
    exit 1
}

clang=$(llvm clang) lld=$(llvm ld.lld)
need gcc g++ "$clang" readelf

# compile C C++ FLAG...: objects of everything, in $work/objects.
compile() {
    local c=$1 cxx=$2 source
    shift 2
    rm -rf "$work/objects"
    mkdir "$work/objects"
    for source in "${sources[@]}"; do
        "$c" "${flags[@]}" "$@" -c "$source" -o "$work/objects/$(basename "$source").o"
    done
    "$cxx" "${flags[@]}" "$@" -c tests/support/trampolines_program.cc -o "$work/objects/program.o"
}

# build WHAT C C++ FLAG... [-- LINK-FLAG...]: a program, which has to be content with itself.
build() {
    local what=$1 c=$2 cxx=$3 flag said
    local compiling=() linking=()
    shift 3
    while (($# > 0)) && [[ $1 != -- ]]; do
        compiling+=("$1")
        shift
    done
    shift || true
    linking=("$@")
    compile "$c" "$cxx" "${compiling[@]}"
    "$cxx" -pthread "${compiling[@]}" "$work"/objects/*.o "${linking[@]}" -o "$work/program" ||
        fail "$what: cannot be linked"
    said=$("${run[@]}" "$work/program" 2>&1) || fail "$what: $said"
    [[ $said == ok ]] || fail "$what: $said"
    readelf -lW "$work/program" >"$work/said"
    grep -q 'GNU_STACK .* RW ' "$work/said" || fail "$what: the stack is executable"
    printf '  %s\n' "$what"
}

# One symbol, as large as all trampolines; and each trampoline can be unwound.
check_symbols() {
    local size=$1 found
    found=$(readelf -sW "$work/program" | awk '$8 ~ /trampoline/ && $4 == "FUNC" && $3 > 4000 {print $3, $8}')
    [[ $found == "$size otel_profile_trampoline" ]] || fail "the symbol is not what it should be: $found"
    found=$(readelf --debug-dump=frames "$work/objects/trampolines.S.o" 2>/dev/null | grep -c ' FDE ')
    [[ $found == 1024 ]] || fail "there are $found descriptions of frames"
}

# check_protection LINKER WORDS: all that is linked together says that it is protected. (What Debian
# links to every program does not say so, therefore programs cannot be asked.)
check_protection() {
    "$1" -r "$work"/objects/*.o -o "$work/all.o"
    readelf -nW "$work/all.o" >"$work/said"
    grep -q "$2" "$work/said" || fail "not protected: $(cat "$work/said")"
}

# What nobody refers to is not linked.
check_unused() {
    printf 'int main(void) { return 0; }\n' >"$work/main.c"
    gcc -Wl,--gc-sections "$work/main.c" "$work"/objects/trampolines*.o -o "$work/unused"
    readelf -sW "$work/unused" | grep -q otel_profile_trampoline && fail "unused trampolines are linked"
    printf '  unused\n'
}

check_library() {
    compile gcc g++ -O2 -fPIC
    gcc -shared -Wl,-Bsymbolic "$work"/objects/trampolines*.o -o "$work/libtrampolines.so"
    readelf -dW "$work/libtrampolines.so" | grep -q TEXTREL && fail "the library has relocations in its code"
    g++ -pthread "$work/objects/program.o" "$work/objects/dead_records.c.o" -L"$work" -ltrampolines \
        -Wl,-rpath,"$work" -o "$work/program"
    [[ $("$work/program" 2>&1) == ok ]] || fail "in a shared library: $("$work/program" 2>&1)"
    printf '  in a shared library\n'
}

check_gdb() {
    command -v gdb >/dev/null || {
        printf 'trampolines.sh: gdb is not installed\n' >&2
        [[ -z ${CI:-} ]] || exit 1
        return 0
    }
    local said
    said=$(gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'break stop_here' -ex 'run stop' -ex bt \
        "$work/program" 2>&1) || true
    [[ $(grep -c 'otel_profile_trampoline' <<<"$said") == 5 ]] && grep -q ' main (' <<<"$said" &&
        ! grep -q 'corrupt stack' <<<"$said" || fail "gdb does not see through: $said"
    printf '  gdb\n'
}

case ${1:-} in
native)
    [[ $(uname -m) == x86_64 ]] || exit 0 # elsewhere the unit tests have to do
    build "gcc -O0" gcc g++ -O0
    build "gcc -O2" gcc g++ -O2
    check_symbols 32768
    check_gdb
    build "gcc, without frame pointers" gcc g++ -O2 -fomit-frame-pointer -ffunction-sections -- -Wl,--gc-sections
    check_unused
    build "gcc -flto" gcc g++ -O2 -flto
    build "gcc -static, protected" gcc g++ -O2 -fcf-protection=full -- -static
    check_protection ld 'IBT, SHSTK'
    check_library
    build "clang" "$clang" "$clang" -O2 -- -lstdc++
    if command -v "$lld" >/dev/null; then
        build "clang -flto=thin" "$clang" "$clang" -O2 -flto=thin "-fuse-ld=${lld#ld.}" \
            -Qunused-arguments -- \
            -lstdc++ -Wl,--gc-sections
    elif [[ -n ${CI:-} ]]; then
        fail "$lld is not installed"
    fi
    ;;
aarch64)
    run=(qemu-aarch64 -L /usr/aarch64-linux-gnu)
    cross=(aarch64-linux-gnu-gcc aarch64-linux-gnu-g++)
    build "AArch64" "${cross[@]}" -O2
    check_symbols 65536
    build "AArch64, protected" "${cross[@]}" -O2 -mbranch-protection=standard
    check_protection aarch64-linux-gnu-ld 'BTI, PAC'
    build "AArch64, static" "${cross[@]}" -O2 -mbranch-protection=standard -- -static
    build "AArch64, without frame pointers" "${cross[@]}" -O2 -fomit-frame-pointer -flto
    ;;
*)
    fail "native or aarch64?"
    ;;
esac
echo "trampolines.sh: ok"
