"""Recognises files of tools that profkit does not read: says what they are, and what to do instead."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.profilers.perf.metrics_only import has_metrics_alone, no_counts

# A line of a tool's own: only there an error is the tool's, and not one of a program that uses the same words.
_OWN_LINES = {
    "ncu": re.compile(r"^==(?:ERROR|WARNING|PROF)==.*", re.MULTILINE),
    "valgrind": re.compile(r"^(?:==\d+==|valgrind:).*", re.MULTILINE),
}
_COLLAPSED = rb"(?:[^\n;]+;)+[^\n;]* \d+\r?\n"  # frames of a stack and how often it was seen


@dataclass(frozen=True)
class _Foreign:
    """A kind of file: how it begins, `what` it is, and the command to run instead."""

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
        "a speedscope profile, which profkit writes but does not read",
        "profkit profile -- COMMAND   (or open it at speedscope.app)",
    ),
    _Foreign(
        re.compile(rb'\A\s*\{\s*"machine_info"\s*:'),
        "results of pytest-benchmark: times, not a profile",
        "profkit gate --init   (compares benchmarks of two commits)",
    ),
    _Foreign(
        re.compile(rb'\A\s*\{\s*"results"\s*:\s*\[\s*\{\s*"command"\s*:'),
        "results of hyperfine: times, not a profile",
        "profkit compare --a 'COMMAND' --b 'COMMAND'",
    ),
    _Foreign(
        re.compile(rb"\A\x80[\x00-\x05].{0,80}line_profiler", re.DOTALL),
        "a profile of line_profiler",
        "profkit profile -- python SCRIPT   (it shows lines, too)",
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
        "the output of GNU time for a process: not a profile",
        "profkit profile -- COMMAND",
    ),
    _Foreign(
        re.compile(rb'\A\s{0,80}\{\s{0,80}"alloc_samples"\s{0,8}:'),
        "a profile of scalene",
        "scalene view --cli {name}   (profkit profile -- python SCRIPT: it shows lines, too)",
    ),
    _Foreign(
        re.compile(rb'\A\s{0,80}\{\s{0,80}"traceEvents".{0,60000}?"cat": ?"(?:FEE|fee)"', re.DOTALL),
        "a trace of viztracer, which has every call of a program, but no device",
        "vizviewer {name}   (profkit profile -- python SCRIPT)",
    ),
    _Foreign(
        re.compile(rb'\A\s{0,80}\{.{0,4000}?"preprocessedProfileVersion"\s{0,8}:', re.DOTALL),
        "a profile of the Firefox Profiler, as samply writes it",
        "samply load {name}   (profkit profile -- COMMAND)",
    ),
    _Foreign(
        re.compile(rb'\A\s{0,80}\{\s{0,80}"context"\s{0,8}:\s{0,8}\{.{0,4000}?"num_cpus"', re.DOTALL),
        "results of Google Benchmark: times, not a profile",
        "profkit compare --a 'COMMAND' --b 'COMMAND'",
    ),
    _Foreign(
        re.compile(rb"\Agoos: \w+\ngoarch: \w+\n"),
        "results of go test -bench: times, not a profile",
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
        "a trace of the old torch.autograd.profiler, which does not distinguish kernels from operators",
        "with torch.profiler.profile() as p: ...; p.export_chrome_trace('trace.json')",
    ),
    _Foreign(
        re.compile(rb"\A# austin: \d|\A(?:P\d+;T[^;\n]*;[^\n]* \d+\n){1,2}"),
        "samples of austin",
        "profkit profile -- python SCRIPT   (or austin2speedscope {name} out.json, for speedscope.app)",
    ),
    _Foreign(
        re.compile(
            rb'\A\s{0,80}\{\s{0,80}"session"\s{0,8}:|\A\s{0,80}\{"start_time": ?[\d.]+, ?"duration": ?[\d.]+, ?"'
        ),
        "a session of pyinstrument",
        "profkit profile -- python SCRIPT   (or pyinstrument -r speedscope, for speedscope.app)",
    ),
    _Foreign(
        re.compile(rb"\A\s{0,200}_     \._   __/__ {0,8}"),
        "the text of pyinstrument",
        "profkit profile -- python SCRIPT   (or pyinstrument -r speedscope, for speedscope.app)",
    ),
    _Foreign(
        re.compile(rb"\A\s{0,80}Timer unit: [\d.e+-]+ s\n"),
        "the text of line_profiler",
        "profkit profile -- python SCRIPT   (it shows lines, too)",
    ),
    _Foreign(
        re.compile(rb"\A(?:CMDLINE [^\n]*\n(?:MEM|FUNC|CHLD) )|\AFilename: [^\n]*\n\nLine # +Mem usage "),
        "memory by time or line, as memory_profiler writes it",
        "profkit profile -- python SCRIPT   (says which lines allocate)",
    ),
    _Foreign(
        re.compile(rb"\AProcess \d+: [^\n]*\nPython v\d"),
        "stacks of one moment, as py-spy dump prints them",
        "profkit profile --pid PID",
    ),
    _Foreign(
        re.compile(rb"\Aimport time: self \[us\]"),
        "the times of imports, as python -X importtime prints them",
        "profkit profile -- python SCRIPT   (says which imports take long)",
    ),
    _Foreign(
        re.compile(rb"\A-{5,}(?: +-{5,}){2,} *\n +Name +Self CPU %"),
        "the table of torch.profiler, which has no times of single calls",
        "p.export_chrome_trace('trace.json')   (p: the profiler), then profkit summarize trace.json",
    ),
    _Foreign(
        re.compile(rb"\A\x80[\x02-\x05].{0,400}?(?:device_traces|segments)", re.DOTALL),
        "a snapshot of torch's memory",
        "open it at pytorch.org/memory_viz   (profkit profile -- COMMAND has the peak)",
    ),
    _Foreign(
        re.compile(rb'\A\s{0,80}\{\s{0,80}"nodes"\s{0,8}:\s{0,8}\[.{0,400}?"callFrame"', re.DOTALL),
        "a .cpuprofile of V8 (Chrome, Node.js)",
        "profkit profile -- node --perf-basic-prof SCRIPT   (or open it in Chrome's developer tools)",
    ),
    _Foreign(
        re.compile(
            rb'\A\s{0,80}(?:\{\s{0,80}"traceEvents"\s{0,8}:\s{0,8})?\[.{0,60000}?"name"\s{0,8}:\s{0,8}"Browser"',
            re.DOTALL,
        ),
        "a trace of Chrome, the browser",
        "open it at ui.perfetto.dev",
    ),
    _Foreign(
        re.compile(rb"(?m)\A(?:==\d+== [^\n]*\n){0,40}\"Type\",\"Time\(%\)\",\"Time\""),
        "the output of nvprof",
        "nsys profile -o trace COMMAND && nsys export --type sqlite trace.nsys-rep && profkit summarize trace.sqlite",
    ),
    _Foreign(
        re.compile(rb'\A"?Kind"?,"?Agent_Id"?,"?Queue_Id"?,'),
        "rocprofv3's list of kernels",
        "profkit summarize TRACE.json   (a trace of torch.profiler, which has AMD's kernels, too)",
    ),
    _Foreign(
        re.compile(rb"\APerformance counter statistics[,:]"),
        "the output of Android's simpleperf stat",
        "perf stat -x';' -- COMMAND   (with perf itself)",
    ),
    _Foreign(
        re.compile(rb"(?m)\A(?:[^\n]*\n){0,4}Was the 'perf record' command properly terminated\?"),
        "a warning of perf: it was killed before it had written the whole recording",
        "perf record -o perf.data COMMAND   (again; end it with one Ctrl-C)",
    ),
    _Foreign(
        re.compile(rb'\A\s{0,80}\{\s{0,80}"commit_hash"\s{0,8}:'),
        "results of asv: times, not a profile",
        "profkit gate --init   (compares benchmarks of two commits)",
    ),
    _Foreign(
        re.compile(
            rb'\A\s{0,80}\{\s{0,80}"benchmarks"\s{0,8}:\s{0,8}\[\s{0,80}\{\s{0,80}"(?:metadata|runs)"'
        ),
        "results of pyperf: times, not a profile",
        "profkit compare --a 'COMMAND' --b 'COMMAND'",
    ),
    _Foreign(
        re.compile(
            rb"\A(?:<\?xml[^\n]{0,200}\?>\s{0,80})?(?:<!DOCTYPE svg[^>]{0,400}>\s{0,80})?<svg[^>]{0,2000}>"
        ),
        "a picture (SVG), such as a flame graph: it does not have the samples that it was made from",
        "profkit profile -- COMMAND   (its page has a flame graph)",
    ),
    _Foreign(
        re.compile(rb"\AFLR\x00"),
        "a recording of Java's Flight Recorder",
        "profkit profile -- java -XX:+PreserveFramePointer MAIN   (or jfr print {name})",
    ),
    _Foreign(
        re.compile(rb"\A% time +seconds +usecs/call +calls +errors syscall\n"),
        "the counts of system calls by strace -c",
        "profkit profile -- COMMAND",
    ),
    _Foreign(
        re.compile(rb"\A\n?real\s{1,8}\d{1,6}m[\d.,]{1,12}s\n"),
        "the output of the shell's time for a process: not a profile",
        "profkit profile -- COMMAND",
    ),
    _Foreign(
        re.compile(rb"\AAnalysis of sampling [^\n]* every \d+ milliseconds?\n"),
        "stacks recorded by sample, a tool of macOS",
        "profkit profile -- COMMAND   (on that Mac)",
    ),
    _Foreign(
        re.compile(rb"\A\n.{0,60000}?/(?:host:(?:CPU|metadata)|device:(?:GPU|TPU):\d)", re.DOTALL),
        "an .xplane.pb of jax.profiler or TensorFlow",
        "profkit summarize *.trace.json.gz   (next to it, where jax.profiler wrote it)",
    ),
    _Foreign(
        re.compile(rb"\Amemray\x00"),
        "a recording of memray",
        "memray stats {name}",
    ),
    _Foreign(
        re.compile(
            rb'\A\s{0,80}(?:\{.{0,4000}?"traceEvents"\s{0,8}:\s{0,8})?\[\s{0,80}\{.{0,400}?"ph"\s{0,8}:\s{0,8}"[A-Za-z]"',
            re.DOTALL,
        ),
        "a trace in Chrome's format, but not one of torch.profiler or jax.profiler",
        "open it at ui.perfetto.dev",
    ),
    _Foreign(
        re.compile(rb"\A\x1f\x8b\x08"),
        "packed with gzip, and not a trace of torch.profiler or jax.profiler",
        "gunzip -k {name}   (then the unpacked file)",
    ),
)


def explain_foreign(path: Path, head: bytes) -> UnreadableReport | None:
    """Return what a file that profkit does not read is, with what to do; None where it is not known."""
    for kind in _KNOWN:
        if kind.begins.search(head) is not None:
            name = shlex.quote(path.name)
            return UnreadableReport(f"{path} is {kind.what}", kind.fix.format(name=name))
    if b"\0" not in head and has_metrics_alone(head.decode("utf-8", "replace").splitlines()[:60]):
        return no_counts(str(path))
    return None


def own_lines(tool: str, text: str) -> str:
    """Return the lines that `tool` printed itself.

    For a tool whose lines have no mark, return the whole text if it names the tool.
    """
    sign = _OWN_LINES.get(tool)
    if sign is not None:
        return "\n".join(sign.findall(text))
    return text if re.search(rf"\b{tool}\b", text) is not None else ""
