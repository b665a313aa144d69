#!/usr/bin/env bash
# Counts one CUDA kernel of a command with Nsight Compute, leaves the report, and judges the kernel by the targets.
#
# usage: analyze.sh REPORT KERNEL COMMAND [ARGUMENT...]        KERNEL is its name or a part of it
#        analyze.sh out.ncu-rep silu_mul python train.py
#        sudo -E analyze.sh out.ncu-rep silu_mul python train.py        where the counters are for root alone
#
# Exit codes are profkit's: 0 done, 1 a target failed, 2 wrong usage, 3 this machine cannot, 4 the command failed.
set -euo pipefail
self=${BASH_SOURCE[0]}
while [ -L "$self" ]; do # not every macOS has realpath
    link=$(readlink "$self")
    case $link in /*) self=$link ;; *) self=$(dirname "$self")/$link ;; esac
done
here=$(cd "$(dirname "$self")" && pwd -P)
. "$here/wrappers/lib.sh"

[ $# -ge 3 ] || stop 2 "usage: ${0##*/} REPORT KERNEL COMMAND [ARGUMENT...]"
report=$1 kernel=$2
shift 2
find_callers_path "$1"
find_python
hand_over "$report"
profkit record --tool ncu --report "$report" --kernel "$kernel" -- "$@"
profkit check "$report"
