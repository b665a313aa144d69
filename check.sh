#!/usr/bin/env bash
# Sets up, then passes lint, format, types, spelling and tests; ends with 0 only where all of them do. Goes on past a failure,
# so that one call shows everything that is wrong.
#
# usage: ./check.sh [--all] [PYTEST-ARGUMENT...]      ./check.sh -k region   runs only the tests whose name has it
#
#   --all                also runs the tests that are marked thorough; without it the last lines say how many they are
#   PROFKIT_COSTS=10     how many tests are named that took most of the processor, after each step
#   PROFKIT_COVERAGE=1   also says how many lines of profkit the tests ran (Python 3.12 or newer), and writes coverage.xml
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
cd "$root"
quick=(-p tests.quick)
if [ "${1:-}" = --all ]; then
    quick=()
    shift
fi
PROFKIT_TORCH=0 ./setup.sh --dev true
export PATH="$root/.venv/bin:$PATH" VIRTUAL_ENV="$root/.venv"

# Lint, format, types and spelling need no torch: they run beside its set-up and beside the tests. In a new clone the tests are
# compiled first, once and not by each worker.
failed=()
beside=$(mktemp -d)
trap 'rm -rf "$beside"' EXIT
coverage=${PROFKIT_COVERAGE:-} costs=${PROFKIT_COSTS:-10}
unset PROFKIT_COVERAGE PROFKIT_COSTS
{
    [ -d tests/__pycache__ ] || python -m pytest --collect-only tests >/dev/null 2>&1 || true
    for check in "lint ruff check" "format ruff format --check" "types mypy" "spelling codespell_lib"; do
        read -r name command <<<"$check"
        # shellcheck disable=SC2086
        python -m $command >"$beside/$name" 2>&1 || printf '%s' "$name" >"$beside/$name.failed"
    done
} &
./setup.sh --dev

# Many tests sample or time a real program, and on a machine that others use, too, one in ten thousand may get too few
# samples. What failed beside others is run once more with nothing beside it, and named; more than a handful is no chance.
alone() {
    local cache=$1 names
    shift
    names=$(python -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' "$cache/v/cache/lastfailed")
    [ "$(wc -l <<<"$names")" -le 5 ] || return 1
    printf '\nonce more, with nothing beside it:\n%s\n' "$names"
    PROFKIT_SKIPPED=/dev/null \
        python -m pytest -o cache_dir="$cache" --last-failed --last-failed-no-failures none "$@" || return 1
    printf '%s\n' "$names" >>"$beside/alone"
}

step() {
    local name=$1 start=$SECONDS code=0 cache
    shift
    cache=$(mktemp -d "$beside/cache.XXXXXX")
    printf '\n== %s\n' "$name"
    # bash 3.2 has no empty arrays under `set -u`
    python -m pytest -o cache_dir="$cache" -p tests.costs --costs "$costs" ${quick[@]+"${quick[@]}"} --dist worksteal "$@" || code=$?
    if [ "$code" -eq 1 ]; then
        alone "$cache" "${@:3}" && code=0
    fi
    # 5: no test was chosen by the arguments; the other step may have some
    [ "$code" -eq 0 ] || [ "$code" -eq 5 ] || failed+=("$name")
    printf '== %s: %d s\n' "$name" $((SECONDS - start))
}

# One worker more than cores: many tests wait for a process. What measures real time runs afterwards, a core for each
# and two at most.
cores=$(getconf _NPROCESSORS_ONLN)
export PROFKIT_SKIPPED=$beside/skipped
# Lines are counted in the tests that measure no time.
[ -z "$coverage" ] || export PROFKIT_COVERAGE=$beside
step tests -n "$((cores + 1))" -m "not timed" "$@"
unset PROFKIT_COVERAGE
step "timed tests" -n "$((cores < 2 ? cores : 2))" -m timed "$@"

wait
for name in lint format types spelling; do
    printf '\n== %s\n' "$name"
    cat "$beside/$name"
    [ ! -e "$beside/$name.failed" ] || failed+=("$name")
done

if [ -n "$coverage" ]; then
    printf '\n== coverage: lines of profkit that ran in the processes of the tests\n'
    export COVERAGE_FILE=$beside/.coverage
    if python -m coverage combine -q "$beside" && python -m coverage xml -q -o coverage.xml; then
        printf '%s %% of all lines; coverage.xml has each file\n' "$(python -m coverage report --format total)"
    else
        failed+=(coverage)
    fi
fi

# What the tests above did not try, and what it takes to have it tried: last, so that nobody misses it.
if [ -s "$PROFKIT_SKIPPED" ]; then
    printf '\n'
    awk -F '\t' '{ count[$2] += $1 }
        END { for (why in count) print count[why], (count[why] == 1 ? "test" : "tests"), "skipped:", why }' \
        "$PROFKIT_SKIPPED" | sort -rn
fi

[ ! -e "$beside/alone" ] || printf '\npassed only with nothing beside it:\n%s\n' "$(cat "$beside/alone")"
if [ ${#failed[@]} -gt 0 ]; then
    printf '\nfailed: %s\n' "${failed[*]}"
    exit 1
fi
printf '\nlint, format, types, spelling and tests passed\n'
