#!/usr/bin/env bash
# Records a command with its backend's profiler, leaves the report, says what is in it, and judges the command by the
# backend's targets.
#
# usage: analyze_multibackend.sh BACKEND REPORT COMMAND [ARGUMENT...]        BACKEND is cuda, mps or cpu
#        analyze_multibackend.sh cpu out.data python benchmark/gated_mlp.py --backend cpu
#        analyze_multibackend.sh cuda out.ncu-rep python benchmark/gated_mlp.py --backend cuda      ncu: counters
#        analyze_multibackend.sh cuda out.nsys-rep python train.py                                  nsys: a trace
#        analyze_multibackend.sh cpu out.trace python train.py          on a Mac: samples of the CPU by Instruments
#        analyze_multibackend.sh mps out.trace python train.py          on a Mac: a trace by Instruments, its document
#        analyze_multibackend.sh mps out python train.py                the same as a folder of exported tables
#        sudo -E analyze_multibackend.sh cpu out.data python train.py        what it leaves is yours afterwards
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

[ $# -ge 3 ] || stop 2 "usage: ${0##*/} cuda|mps|cpu REPORT COMMAND [ARGUMENT...]"
backend=$1 report=$2
shift 2
case $backend in
    cpu) if [ "$(uname -s)" = Darwin ]; then tool=xctrace what=cpu; else tool=perf; fi ;;
    cuda) case $report in *.nsys-rep) tool=nsys ;; *) tool=ncu ;; esac ;;
    mps) tool=xctrace ;;
    *) stop 2 "unknown backend $backend: it is cuda, mps or cpu" ;;
esac

# On the CPU one report cannot hold it all: samples say where time goes, the targets speak of counters, which
# take runs of their own.
if [ "$backend" = cpu ]; then
    runs=$report.runs
    [ ! -e "$runs" ] || stop 2 "$runs is there already; choose another name for the report"
    record "$tool" "$report" "$@"
    profkit summarize "$report"
    hand_over "$runs"
    profkit profile --backend cpu --depth gate --check --output "$runs" -- "$@"
else
    record "$tool" "$report" "$@"
    profkit check "$report"
fi
