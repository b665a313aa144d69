#!/usr/bin/env bash
# Nsight Compute alone: counters of a command's GPU kernels, one launch of each configuration.
#
# usage: wrappers/ncu.sh REPORT COMMAND [ARGUMENT...]
#        sudo -E wrappers/ncu.sh out.ncu-rep python train.py        where the counters are for root alone
# One kernel by name: profkit record --tool ncu --report out.ncu-rep --kernel NAME -- COMMAND [ARGUMENT...]
set -euo pipefail
self=${BASH_SOURCE[0]}
while [ -L "$self" ]; do # not every macOS has realpath
    link=$(readlink "$self")
    case $link in /*) self=$link ;; *) self=$(dirname "$self")/$link ;; esac
done
here=$(cd "$(dirname "$self")/.." && pwd -P)
. "$here/wrappers/lib.sh"

[ $# -ge 2 ] || stop 2 "usage: ${0##*/} REPORT COMMAND [ARGUMENT...]"
record ncu "$@"
