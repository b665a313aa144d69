#!/usr/bin/env bash
# Nsight Systems alone: when a command's GPU kernels, copies and NVTX ranges ran. Needs no permission.
#
# usage: wrappers/nsys.sh REPORT COMMAND [ARGUMENT...]
#        wrappers/nsys.sh out.nsys-rep python train.py
set -euo pipefail
self=${BASH_SOURCE[0]}
while [ -L "$self" ]; do # not every macOS has realpath
    link=$(readlink "$self")
    case $link in /*) self=$link ;; *) self=$(dirname "$self")/$link ;; esac
done
here=$(cd "$(dirname "$self")/.." && pwd -P)
. "$here/wrappers/lib.sh"

[ $# -ge 2 ] || stop 2 "usage: ${0##*/} REPORT COMMAND [ARGUMENT...]"
record nsys "$@"
