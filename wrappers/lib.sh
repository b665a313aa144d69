# shellcheck shell=bash disable=SC2154 # here is the front's
# What the shell fronts share: which Python has profkit, what the caller's `python` is (also under sudo), and whose
# the files are afterwards. Sourced; the front has set `here` to the project's folder.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

# stop CODE SENTENCE; codes as everywhere in profkit: 2 wrong usage, 3 this machine cannot do it.
stop() {
    say "$2"
    exit "$1"
}

has_profkit() {
    [ -x "$1" ] && "$1" -c 'import sys
from importlib.util import find_spec
sys.exit(not (find_spec("profkit") and find_spec("typer")))' >/dev/null 2>&1
}

# Sets `python` to an interpreter that has profkit.
find_python() {
    if [ -n "${PROFKIT_PYTHON:-}" ]; then
        python=$(command -v "$PROFKIT_PYTHON" || true)
        has_profkit "$python" || stop 3 "PROFKIT_PYTHON=$PROFKIT_PYTHON is no Python with profkit"
        return
    fi
    for python in "$here/.venv/bin/python" "${VIRTUAL_ENV:-}/bin/python" "$(command -v python3 || true)"; do
        if has_profkit "$python"; then return; fi
    done
    stop 3 "no Python with profkit found; make one: $here/setup.sh"
}

under_sudo() { [ "$(id -u)" -eq 0 ] && [ -n "${SUDO_UID:-}" ] && [ "$SUDO_UID" != 0 ]; }

# sudo replaces PATH by its own, also with -E; its process still holds the one it was called with. Empty where that
# cannot be read (no /proc, a container without CAP_SYS_PTRACE).
path_before_sudo() {
    local pid=$PPID
    while [ "${pid:-0}" -gt 1 ] && [ -r "/proc/$pid/status" ]; do
        if [ "$(cat "/proc/$pid/comm")" = sudo ]; then
            (tr '\0' '\n' <"/proc/$pid/environ" | sed -n 's/^PATH=//p') 2>/dev/null || true
            return
        fi
        pid=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status")
    done
}

# `python` in a workload is the caller's: of the active environment, else of the one beside the script, else of PATH.
# The environment beside the script comes last in any case, since perf and valgrind may be unpacked there.
find_callers_path() {
    local before=
    if under_sudo; then before=$(path_before_sudo); fi
    PATH=${before:+$before:}$PATH
    if [ -n "${VIRTUAL_ENV:-}" ]; then
        PATH=$VIRTUAL_ENV/bin:$PATH
    elif [ -z "${CONDA_PREFIX:-}" ] && [ -x "$here/.venv/bin/python" ]; then
        case ":$PATH:" in
            *":$here/.venv/bin:"*) ;;
            *)
                PATH=$here/.venv/bin:$PATH
                case ${1:-} in python | python3) say "no environment is active: $1 is $here/.venv/bin/$1" ;; esac
                ;;
        esac
    fi
    PATH=$PATH:$here/.venv/bin
    export PATH
}

# The outermost path that is not there yet: what a run that leaves FILE will have made.
first_missing() {
    local path=$1 parent
    while parent=$(dirname "$path") && [ ! -e "$parent" ] && [ "$parent" != "$path" ]; do
        path=$parent
    done
    printf '%s\n' "$path"
}

# hand_over FILE: what a run that leaves FILE makes is given to the caller at the end, however the end comes. What was
# there before keeps its owner.
hand_over() {
    under_sudo || return 0
    if [ -e "$1" ] || [ -L "$1" ]; then return 0; fi
    made+=("$(first_missing "$1")")
    trap give_away EXIT
}
made=()
what=

give_away() {
    local path
    for path in "${made[@]}"; do
        if [ -e "$path" ]; then chown -hR -- "$SUDO_UID${SUDO_GID:+:$SUDO_GID}" "$path"; fi
    done
}

# Runs profkit and waits for it, also past a signal: profkit ends the workload and saves what it has, and only then
# may the files be handed over. In the background (`wait` can be interrupted), with the terminal and Ctrl-C kept.
profkit() {
    local child='' code old='' asked=''
    # Before the child starts: a signal in between would end this script and leave the child alone.
    trap 'asked=TERM; [ -z "${child:-}" ] || kill -TERM "$child" 2>/dev/null || true' TERM HUP
    # The bash of macOS (3.2) leaves SIGINT ignored in whatever it starts in the background, unless that is a job with a
    # group of its own; Ctrl-C reaches such a job only through this script.
    [ "${BASH_VERSINFO[0]}" -ge 4 ] || old=yes
    ${old:+set -m}
    (
        trap - INT
        exec "$python" -m profkit "$@"
    ) <&0 &
    child=$!
    ${old:+set +m}
    [ -z "$asked" ] || kill -TERM "$child" 2>/dev/null || true
    if [ -n "$old" ]; then
        # shellcheck disable=SC2064
        trap "kill -INT $child 2>/dev/null || true" INT
    else
        trap : INT
    fi
    while :; do
        code=0
        wait "$child" || code=$?
        kill -0 "$child" 2>/dev/null || break
    done
    return "$code"
}

# record TOOL REPORT COMMAND...: profkit's own recipe for that tool; a front may set `what` it records.
record() {
    local tool=$1 report=$2
    shift 2
    find_callers_path "$1"
    find_python
    hand_over "$report"
    profkit record --tool "$tool" --report "$report" ${what:+--what "$what"} -- "$@"
}
