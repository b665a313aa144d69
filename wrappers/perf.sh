#!/usr/bin/env bash
# perf alone: samples of where a command spends its time.
#
# usage: wrappers/perf.sh REPORT COMMAND [ARGUMENT...]
#        sudo -E wrappers/perf.sh out.data python train.py
set -euo pipefail
self=${BASH_SOURCE[0]}
while [ -L "$self" ]; do # not every macOS has realpath
    link=$(readlink "$self")
    case $link in /*) self=$link ;; *) self=$(dirname "$self")/$link ;; esac
done
here=$(cd "$(dirname "$self")/.." && pwd -P)
. "$here/wrappers/lib.sh"

[ $# -ge 2 ] || stop 2 "usage: ${0##*/} REPORT COMMAND [ARGUMENT...]"
record perf "$@"
