#!/usr/bin/env bash
# perf alone: samples of where a command spends its time.
#
# usage: wrappers/perf.sh REPORT COMMAND [ARGUMENT...]
#        sudo -E wrappers/perf.sh out.data python train.py
set -euo pipefail
here=$(cd "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/.." && pwd)
. "$here/wrappers/lib.sh"

[ $# -ge 2 ] || stop 2 "usage: ${0##*/} REPORT COMMAND [ARGUMENT...]"
record perf "$@"
