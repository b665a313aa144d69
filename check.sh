#!/usr/bin/env bash
# Sets up, then passes lint, format, types and tests; ends with 0 only where all of them do. Goes on past a failure,
# so that one call shows everything that is wrong.
#
# usage: ./check.sh [PYTEST-ARGUMENT...]      ./check.sh -k region   runs only the tests whose name has it
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
cd "$root"
./setup.sh --dev
export PATH="$root/.venv/bin:$PATH" VIRTUAL_ENV="$root/.venv"

failed=()
step() {
    local name=$1 start=$SECONDS
    shift
    printf '\n== %s\n' "$name"
    python -m "$@" || failed+=("$name")
    printf '== %s: %d s\n' "$name" $((SECONDS - start))
}

step lint ruff check
step format ruff format --check
step types mypy
step tests pytest "$@"

if [ ${#failed[@]} -gt 0 ]; then
    printf '\nfailed: %s\n' "${failed[*]}"
    exit 1
fi
printf '\nlint, format, types and tests passed\n'
