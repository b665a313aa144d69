#!/usr/bin/env bash
# Makes this clone ready to use, then runs COMMAND in it.
#
# usage: ./setup.sh [--dev] [COMMAND [ARGUMENT...]]
#
#   ./setup.sh                              makes .venv with profkit, and finds or fetches perf and valgrind; on
#                                           macOS, which has neither, it looks for Xcode's xctrace
#   ./setup.sh --dev                        the same with what tests, lint and types need
#   ./setup.sh profkit doctor               the same, then a command with .venv in front of PATH
#
# Needs Python 3.10 or newer and, for what is fetched, the network. Does nothing twice: a second call takes no time.
# As root on Debian or Ubuntu it installs missing packages with apt-get; otherwise it unpacks them under .tools/ in
# this folder. It never calls sudo, and never replaces a torch that is already there.
#
#   PYTHON=/path/to/python3   the interpreter to build on (default: python3, or else a newer one on PATH)
#   PROFKIT_TORCH=1|0         install torch whatever its size | never (default: only a build without CUDA packages)
#   PROFKIT_LOCK=0            with --dev: the newest packages that fit, not those of setup/locked.txt with their hashes
#   PROFKIT_APT=0             install and unpack no Debian packages
set -Eeuo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
venv=$root/.venv
tools=$root/.tools

. "$root/setup/progress.sh"
. "$root/setup/debian.sh"
. "$root/setup/environment.sh"
. "$root/setup/torch.sh"
. "$root/setup/cuda.sh"
. "$root/setup/profilers.sh"
. "$root/setup/browser.sh"
. "$root/setup/sshd.sh"

extras=base
while [ $# -gt 0 ]; do
    case $1 in
        --dev) extras=dev ;;
        -h | --help)
            sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$root/setup.sh"
            exit 0
            ;;
        --)
            shift
            break
            ;;
        -*) stop 2 "unknown option $1 (see ./setup.sh --help)" ;;
        *) break ;;
    esac
    shift
done

make_ready() {
    # Not in $(...) within: bash 3.2 calls the trap there also where the failure is an answer.
    trap '[ "$BASH_SUBSHELL" -gt 1 ] || say "gave up at line $LINENO of ${BASH_SOURCE[0]##*/}: $BASH_COMMAND"' ERR
    make_environment
    add_torch
    add_triton
    add_nvtx
    find_profilers
    find_browser
    find_sshd
}

# Two calls at once (two terminals, two CI jobs on one checkout) must not build the same folder.
mkdir -p "$tools" 2>/dev/null || stop 3 "cannot write to $root; clone profkit to a folder of your own"
if command -v flock >/dev/null; then
    (flock 9 && make_ready) 9>"$tools/lock"
else
    (make_ready)
fi
code=$? # the bash of macOS (3.2) goes on after a subshell that failed
[ "$code" -eq 0 ] || exit "$code"

PATH=$venv/bin:$PATH
if [ $# -gt 0 ]; then
    export PATH VIRTUAL_ENV="$venv"
    unset PYTHONHOME
    exec "$@"
fi
say "ready. Type: . .venv/bin/activate"
