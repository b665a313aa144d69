#!/usr/bin/env bash
# Instruments alone, on a Mac: what a command's process and everybody else did on the GPU (Metal System Trace).
#
# usage: wrappers/xctrace.sh REPORT COMMAND [ARGUMENT...]
#        wrappers/xctrace.sh out.trace python train.py      the document, which Instruments opens
#        wrappers/xctrace.sh out python train.py            a folder of its tables as XML, to be read on any machine
# Built from recordings of others and a stand-in for xctrace; it has not run on real hardware yet.
set -euo pipefail
self=${BASH_SOURCE[0]}
while [ -L "$self" ]; do # not every macOS has realpath
    link=$(readlink "$self")
    case $link in /*) self=$link ;; *) self=$(dirname "$self")/$link ;; esac
done
here=$(cd "$(dirname "$self")/.." && pwd -P)
. "$here/wrappers/lib.sh"

[ $# -ge 2 ] || stop 2 "usage: ${0##*/} REPORT COMMAND [ARGUMENT...]"
record xctrace "$@"
