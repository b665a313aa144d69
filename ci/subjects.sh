#!/usr/bin/env bash
# Names each commit of a range whose subject has more than 72 characters, and ends with 1 where there is one.
#
# usage: ci/subjects.sh BASE..HEAD
set -euo pipefail

export LC_ALL=C.UTF-8 # characters, and not bytes
code=0
while read -r commit subject; do
    if [ "${#subject}" -gt 72 ]; then
        printf '%s has a subject of %d characters: %s\n' "$commit" "${#subject}" "$subject"
        code=1
    fi
done < <(git log --no-merges --format='%h %s' "$@")
exit "$code"
