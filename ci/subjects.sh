#!/usr/bin/env bash
# Names each commit of a range whose subject has more than 72 characters, and ends with 1 where there is one.
#
# usage: ci/subjects.sh BASE..HEAD
set -euo pipefail

git log --no-merges --format='%h %s' "$@" | awk '
    length(substr($0, index($0, " ") + 1)) > 72 { print "more than 72 characters: " $0; long = 1 }
    END { exit long }'
