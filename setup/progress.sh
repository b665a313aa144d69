# shellcheck shell=bash disable=SC2154 # root, venv, tools and extras are setup.sh's
# What setup says while it works: one line per step on standard error, the step's own output only where it fails.

say() { printf 'setup: %s\n' "$*" >&2; }

# stop CODE SENTENCE: end with one sentence. 2 is wrong usage, 3 is what this machine cannot do.
stop() {
    printf 'setup: %s\n' "$2" >&2
    exit "$1"
}

# try LABEL COMMAND...: run a step quietly. Where it fails, its last lines are shown, its log is kept and said.
try() {
    local label=$1 log start code=0
    shift
    mkdir -p "$tools/log"
    log=$tools/log/$(printf '%s' "$label" | tr -cs 'a-zA-Z0-9.' '-').log
    start=$SECONDS
    printf 'setup: %s ... ' "$label" >&2
    "$@" >"$log" 2>&1 </dev/null || code=$?
    if [ "$code" -eq 0 ]; then
        printf '%d s\n' $((SECONDS - start)) >&2
        rm -f "$log"
        return 0
    fi
    printf 'failed (exit %d). Its last lines:\n' "$code" >&2
    tail -n 15 "$log" | sed 's/^/    /' >&2
    printf '    (all of it: %s)\n' "$log" >&2
    return "$code"
}
