#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks a model with Spin, every state of it.
#
#   run.sh check MODEL WORK     each configuration of MODEL.pml: no error is possible
#   run.sh weakened MODEL WORK  MODEL.pml with one thing wrong: each of these has an error
#
# WORK is a directory to work in. With OTEL_TEST_LONG=1 the configurations are larger. CC is
# what compiles the checkers. The trail of an unexpected error is printed. A model that was found as it
# should be on this machine is not checked again before it changes.
source "$(dirname "${BASH_SOURCE[0]}")/../gates/lib.sh"
source scripts/lib.sh
need spin "${CC:=cc}"

way=$1 model=$2 work=$3/$2-$1
source=$PWD/tests/model/$model.pml
long=${OTEL_TEST_LONG:-}
memory_mb=${long:+6000}
stamps=$(cache_dir)/models
stamp=$stamps/$model-$way${long:+-long}-$(cat "$source" tests/model/run.sh | sha256sum | cut -c 1-40)
mkdir -p "$stamps"
find "$stamps" -ignore_readdir_race -type f -mtime +30 -delete # others do so meanwhile
if [[ -e $stamp ]]; then
    finish "$model, not changed since it was checked"
    exit
fi
rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1

# One a line: what is defined.
configurations() {
    case $model${long:+-long} in
    waker) printf '%s\n' -DANNOUNCEMENTS=2 -DREQUESTS=1 '-DANNOUNCEMENTS=2 -DFLUSHES=1 -DLAST_ANNOUNCEMENTS=0' \
        '-DPOLLED -DANNOUNCEMENTS=2 -DFLUSHES=1 -DLAST_ANNOUNCEMENTS=0' ;;
    waker-long) printf '%s\n' -DANNOUNCEMENTS=3 '-DANNOUNCEMENTS=2 -DREQUESTS=1' -DFLUSHES=1 '-DFLUSHES=1 -DPOLLED' \
        '-DFLUSHES=1 -DREQUESTS=1 -DLAST_ANNOUNCEMENTS=0' ;;
    quota) printf '%s\n' -DSPANS=2 ;;
    quota-long) printf '%s\n' -DFIRST_SPANS=3 ;;
    drain) printf '%s\n' -DSPANS=2 '-DPRODUCERS=2 -DLAST_SPANS=2 -DLINES=4' ;;
    drain-long) printf '%s\n' -DLAST_SPANS=2 '-DFLUSHES=2 -DPRODUCERS=2 -DLAST_SPANS=2' \
        '-DPRODUCERS=2 -DSPANS=3 -DLAST_SPANS=3 -DCAPACITY=2' ;;
    leaf) printf '%s\n' -DCALLS=4 '-DCALLS=3 -DHANDLED=2' ;;
    leaf-long) printf '%s\n' -DCALLS=6 ;;
    mark) printf '%s\n' -DSPANS=1 ;;
    mark-long) printf '%s\n' -DSPANS=2 ;;
    shutdown) printf '%s\n' -DSPANS=1 ;;
    shutdown-long) printf '%s\n' -DFIRST_SPANS=2 ;;
    *) wrong "no model: $model" ;;
    esac
}

# One a line: what goes wrong, and what else is defined.
weaknesses() {
    case $model in
    waker) printf '%s\n' SIGNAL_BEFORE_PUBLISH NO_LOOK_BEFORE_SLEEPING LOST_WORKER_FENCE \
        LOST_PRODUCER_FENCE NO_SWAP OLD_SUM 'OLD_REQUEST -DREQUESTS=1' \
        'NO_NUMBER -DANNOUNCEMENTS=2' 'NO_WORD -DFLUSHES=1' 'LISTEN_LATE -DFLUSHES=1' \
        'WAKE_BEFORE_ASKING -DFLUSHES=1' 'DRAIN_AFTER_LOOKING -DPOLLED -DFLUSHES=1' ;;
    quota) printf '%s\n' CHECK_THEN_ADD FREED_EARLY UNANNOUNCED FULL_AFTER_REQUEST \
        'EMPTY_AFTER_LOOKING -DFIRST_SPANS=3' ;;
    drain) printf '%s\n' RING_FIRST CHANGE_BEFORE_RING PUBLISH_FIRST COMMIT_FIRST JOINED_PASS \
        GIVE_BACK_CURRENT NO_PINS 'LATE_TICKET -DFLUSHES=2' \
        'STOP_AT_GAP -DPRODUCERS=2 -DLAST_SPANS=2 -DLINES=4' \
        'SLOTS=1 -DPRODUCERS=2 -DLAST_SPANS=2 -DLINES=4' ;;
    leaf) printf '%s\n' NO_TAKE_BACK_AT_ENTER NO_TAKE_BACK_AT_APPEND NO_TAKE_BACK_AT_EXCHANGE \
        COMMIT_AT_OPENING BEHIND_LEAF ADDRESS_BEFORE_BUSY CHILD_KEEPS_LEAF ;;
    mark) printf '%s\n' LOOK_BEFORE_COMMIT WAKE_BEFORE_MARK NO_GRACE NO_SECOND_LOOK ;;
    shutdown) printf '%s\n' LOST_FENCE NO_WAIT_FOR_BORROWERS NO_LAST_PASS ;;
    *) wrong "no model: $model" ;;
    esac
}

error='^pan:1: (assertion violated|invalid end state)'

# search DEFINITIONS COMPILER-OPTIONS: leaves what the checker says in the file "said".
search() {
    rm -f pan* ./*.trail
    : >said
    # Words of options are meant to be separate.
    # shellcheck disable=SC2086
    spin -a $1 "$source" >spin.log 2>&1 || { cat spin.log >&2; return 1; }
    # shellcheck disable=SC2086
    "$CC" $2 -w -DSAFETY -DMEMLIM="${memory_mb:-1800}" -o pan pan.c || return 1
    ./pan -m1000000 >said 2>&1 || true
}

is_complete() {
    grep -q 'errors: 0$' said && ! grep -qE 'not completed|depth too small' said
}

# The last steps of the error that was found.
print_trail() {
    local trail=("$work"/*.trail)
    [[ -e ${trail[0]} ]] || return 0
    # shellcheck disable=SC2086
    spin -t -p -g -k "${trail[0]}" $1 "$source" | tail -n 200 >&2 || true
}

count=0
while IFS= read -r options; do
    count=$((count + 1))
    if [[ $way == check ]]; then
        if ! search "$options" "-O2 ${long:+-DCOLLAPSE}" || ! is_complete; then
            cat said >&2
            print_trail "$options"
            wrong "tests/model/$model.pml:1: wrong, or too large, with $options"
        fi
        printf '%s %s: %s\n' "$model" "$options" \
            "$(sed -n 's/^ *\([0-9.e+]* states\), stored$/\1/p' said)"
    else
        if ! search "-D$options" -O0 || ! grep -qE "$error" said; then
            wrong "tests/model/$model.pml:1: no error with -D$options"
        fi
        printf '%s -D%s: %s\n' "$model" "$options" "$(sed -n 's/^pan:1: //p' said)"
    fi
done < <(if [[ $way == check ]]; then configurations; else weaknesses; fi)

[[ $count -ne 0 ]] || wrong "nothing to $way of $model"
finish "$model, $count ways"
touch "$stamp"
