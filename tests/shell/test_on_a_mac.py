"""The shell fronts on macOS: bash 3.2, BSD's tools, no apt-get. What those lack is looked for by its words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FRONTS = sorted(path for pattern in ("*.sh", "setup/*.sh", "wrappers/*.sh") for path in ROOT.glob(pattern))
# What came after bash 3.2, and what GNU's or Linux's tools have and macOS has not.
_NEWER = (
    r"\b(?:mapfile|readarray|coproc)\b|declare -[gAn]|local -n|wait -n|&>>|\|&|\$\{\w+[,^@]|\[\[ -v "
    r"|\bEPOCH(?:SEC|REAL)|\$\{\w+: -|printf '%\("
)
_LINUX = (
    r"\breadlink -[fem]|\bstat -c|\bdate \+\S*%N|(?<![\w-])timeout \d|\bnproc\b|\bsed -i\b|\bsed -r\b|\btac\b"
    r"|\bgrep -\w*P|\bsha\d+sum\b|\bmd5sum\b|\bcp -a\b|\bfind [^|;]*-printf|\bxargs -\w*r|\bsort -V"
    r"|\bhead -c|\bsetsid\b|\bgetent\b"
)


def code_of(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]


@pytest.mark.parametrize("path", FRONTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_front_asks_for_nothing_that_macos_lacks(path: Path) -> None:
    found = [line for line in code_of(path) if re.search(f"{_NEWER}|{_LINUX}", line)]
    assert found == []


@pytest.mark.parametrize("path", FRONTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_array_that_may_be_empty_is_no_unbound_variable_to_bash_3(path: Path) -> None:
    """`set -u` of bash before 4.4 stops at "${empty[@]}"; "${empty[*]}" and ${#empty[@]} behind a test are well."""
    text = "\n".join(code_of(path))
    empty = set(re.findall(r"^\s*(?:local .*?)?(\w+)=\(\)", text, re.MULTILINE))
    bare = {name for name in empty if re.search(rf'(?<!\+)"\$\{{{name}\[@\]\}}"', text)}
    # Walked through in a trap that is set after something was put into it.
    assert bare <= {"made"}
