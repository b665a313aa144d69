"""Files that are no report of a profiler which profkit reads, but known: what they are, and the way on."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import UnreadableReport

# A line of a tool's own: only there an error is the tool's, and not one of a program that uses the same words.
_OWN_LINES = {
    "ncu": re.compile(r"^==(?:ERROR|WARNING|PROF)==.*", re.MULTILINE),
    "valgrind": re.compile(r"^(?:==\d+==|valgrind:).*", re.MULTILINE),
}
_COLLAPSED = rb"(?:[^\n;]+;)+[^\n;]* \d+\n"  # frames of a stack and how often it was seen


@dataclass(frozen=True)
class _Foreign:
    """What begins like this, `what` it is, and the command that leads on."""

    begins: re.Pattern[bytes]  # searched in the file's first 64 KiB
    what: str
    fix: str


_KNOWN = (
    _Foreign(
        re.compile(rb"\Aversion https://git-lfs\.github\.com/spec/"),
        "a pointer of Git LFS, not the report itself",
        "git lfs pull --include {name}",
    ),
    _Foreign(
        re.compile(rb"\A(?:\xff\xfe(?:[\t\r\n -~]\x00){4}|\xfe\xff(?:\x00[\t\r\n -~]){4})"),
        "UTF-16 text, as PowerShell's > writes it",
        "Get-Content {name} | Set-Content -Encoding utf8 utf8-{name}   (elsewhere: iconv -f UTF-16 -t UTF-8)",
    ),
    _Foreign(
        re.compile(rb"\A\s*\{[^{]*speedscope\.app/file-format-schema"),
        "a speedscope profile, which profkit writes and does not read",
        "profkit profile -- COMMAND   (or open it at speedscope.app)",
    ),
    _Foreign(
        re.compile(rb'\A\s*\{\s*"machine_info"\s*:'),
        "results of pytest-benchmark: times, and no profile",
        "profkit gate --init   (compares benchmarks of two commits)",
    ),
    _Foreign(
        re.compile(rb'\A\s*\{\s*"results"\s*:\s*\[\s*\{\s*"command"\s*:'),
        "results of hyperfine: times, and no profile",
        "profkit compare --a 'COMMAND' --b 'COMMAND'",
    ),
    _Foreign(
        re.compile(rb"\A\x80[\x00-\x05].{0,80}line_profiler", re.DOTALL),
        "a profile of line_profiler",
        "profkit profile -- python SCRIPT   (its rows are lines, too)",
    ),
    _Foreign(
        re.compile(
            rb"\A\s{0,80}(?:[^\n]{0,200}\n)?\s{0,80}\d+ function calls (?:\(\d+ primitive calls\) )?in [\d.]+ seconds"
        ),
        "cProfile's statistics as text",
        "python -m cProfile -o run.prof SCRIPT && profkit summarize run.prof",
    ),
    _Foreign(
        re.compile(rb"\A(?:#[^\n]*\n|\n)*# *Overhead\b"),
        "the text of perf report, which has no stacks",
        "perf script -i perf.data > script.txt && profkit summarize script.txt",
    ),
    _Foreign(
        re.compile(rb"\A(?:" + _COLLAPSED + rb"){2}"),
        "collapsed stacks, as flamegraph.pl and py-spy record -f raw write them: they have no times",
        "profkit profile -- COMMAND   (its artifacts/ have stacks in this form)",
    ),
    _Foreign(
        re.compile(rb"\Amemray\x00"),
        "a recording of memray",
        "memray stats {name}",
    ),
)


def explain_foreign(path: Path, head: bytes) -> UnreadableReport | None:
    """Return what a file without a known format is, with the way on; None where that is not known either."""
    for one in _KNOWN:
        if one.begins.search(head) is not None:
            name = shlex.quote(path.name)
            return UnreadableReport(f"{path} is {one.what}", one.fix.format(name=name))
    return None


def own_lines(tool: str, text: str) -> str:
    """Return the lines that `tool` printed itself; of one whose lines bear no sign, all of a text that names it."""
    sign = _OWN_LINES.get(tool)
    if sign is not None:
        return "\n".join(sign.findall(text))
    return text if re.search(rf"\b{tool}\b", text) is not None else ""
