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
        re.compile(rb"\Agmon\x01\x00\x00\x00|\AFlat profile:\n\nEach sample counts as "),
        "a profile of gprof",
        "profkit profile -- COMMAND   (its samples need no -pg)",
    ),
    _Foreign(
        re.compile(rb"\A *Percent *\|[ \t]*Source code & Disassembly of "),
        "the text of perf annotate, which has no stacks",
        "perf script -i perf.data > script.txt && profkit summarize script.txt",
    ),
    _Foreign(
        re.compile(rb"\Adesc: [^\n]*\ncmd: [^\n]*\ntime_unit: "),
        "a profile of the heap by valgrind's massif",
        "ms_print {name}   (profkit profile -- COMMAND has the peak of memory)",
    ),
    _Foreign(
        re.compile(rb"\A-{40,}\nCommand: [^\n]*\nMassif arguments: "),
        "the text of ms_print",
        "profkit profile -- COMMAND   (has the peak of memory)",
    ),
    _Foreign(
        re.compile(rb"\A\tCommand being timed: "),
        "what GNU time printed of a process: no profile",
        "profkit profile -- COMMAND",
    ),
    _Foreign(
        re.compile(rb'\A\s{0,80}\{\s{0,80}"alloc_samples"\s{0,8}:'),
        "a profile of scalene",
        "scalene view --cli {name}   (profkit profile -- python SCRIPT: its rows are lines, too)",
    ),
    _Foreign(
        re.compile(rb'\A\s{0,80}\{\s{0,80}"traceEvents".{0,60000}?"cat": ?"(?:FEE|fee)"', re.DOTALL),
        "a trace of viztracer, which has each call of a program and no device",
        "vizviewer {name}   (profkit profile -- python SCRIPT)",
    ),
    _Foreign(
        re.compile(rb'\A\s{0,80}\{.{0,4000}?"preprocessedProfileVersion"\s{0,8}:', re.DOTALL),
        "a profile of the Firefox Profiler, as samply writes it",
        "samply load {name}   (profkit profile -- COMMAND)",
    ),
    _Foreign(
        re.compile(rb'\A\s{0,80}\{\s{0,80}"context"\s{0,8}:\s{0,8}\{.{0,4000}?"num_cpus"', re.DOTALL),
        "results of Google Benchmark: times, and no profile",
        "profkit compare --a 'COMMAND' --b 'COMMAND'",
    ),
    _Foreign(
        re.compile(rb"\Agoos: \w+\ngoarch: \w+\n"),
        "results of go test -bench: times, and no profile",
        "profkit compare --a 'COMMAND' --b 'COMMAND'",
    ),
    _Foreign(
        re.compile(rb"\A(?:[A-Z][\w ]*: [^\n]*\n){1,5}Showing nodes accounting for "),
        "the text of pprof",
        "profkit profile -- COMMAND   (perf sees programs of Go, too)",
    ),
    _Foreign(
        re.compile(rb'\A"?Name"?,"?Calls"?,"?TotalDurationNs"?,'),
        "rocprof's times of kernels",
        "profkit summarize TRACE.json   (a trace of torch.profiler, which has AMD's kernels, too)",
    ),
    _Foreign(
        re.compile(
            rb'\A\s{0,80}\[\s{0,80}\{.{0,4000}?"pid"\s{0,8}:\s{0,8}"(?:CPU|CUDA) functions"', re.DOTALL
        ),
        "a trace of the old torch.autograd.profiler, which does not tell kernels from operators",
        "with torch.profiler.profile() as p: ...; p.export_chrome_trace('trace.json')",
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
