"""`perf script` text in, stacks and tables out. Truths come from counting by other means."""

from __future__ import annotations

import contextlib
import io
import re
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from profkit.analysis.stacks.merge import KERNEL, NO_STACK, PYTHON
from profkit.core.errors import UnreadableReport
from profkit.core.types import Frame, Profile, Report
from profkit.profilers.perf.script import ScriptStream, looks_like_script, parse_frame, read_script
from profkit.profilers.registry import recognise_format
from tests.spoken import spoken_lines

DATA = Path(__file__).parent.parent.parent / "data" / "perf"
OWN = ["script.py313-jit.txt", "script.inlined.txt", "script.one-line.txt", "script.two-events.txt"]
HEAD = 64 * 1024


def read(tmp_path: Path, text: str | bytes) -> Report:
    path = tmp_path / "script.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_script(path)


class Sample(NamedTuple):
    """One sample of the text, frames outermost first."""

    comm: str
    pid: int
    tid: int | None
    cpu: int | None
    time: float | None
    period: int | None
    event: str | None
    stack: tuple[Frame, ...]


def samples(text: str) -> list[Sample]:
    reader = ScriptStream()
    found = []
    for match, ids in reader.samples(io.BytesIO(text.encode())):
        tid, cpu, period = (int(match[name]) if match[name] else None for name in ("tid", "cpu", "period"))
        time = float(match["time"]) if match["time"] else None
        event = match["event"].decode() if match["event"] else None
        stack = tuple(reader.table.frames[index] for index in reversed(ids))
        found.append(Sample(match["comm"].decode(), int(match["pid"]), tid, cpu, time, period, event, stack))
    return found


def row(profile: Profile, function: str) -> tuple[float, float | None]:
    (found,) = [(h.own, h.total) for h in profile.hotspots if h.function == function]
    return found


@pytest.mark.parametrize(
    ("name", "count", "seconds"),
    [
        ("script.py311-cpu-clock.txt", 240, 240 * 0.001003009),
        ("script.py312-Xperf-fp.txt", 253, 253 * 0.001003009),
        ("script.py313-perf_jit-dwarf.txt", 255, 255 * 0.001003009),
    ],
)
def test_recorded_scripts_have_all_samples_and_all_time(reports: Path, name: str, count: int, seconds: float):
    path = reports / "perf" / "vm-without-pmu-perf6.1" / name
    text = path.read_text()
    assert text.count(" cpu-clock:") == count
    report = read_script(path)
    assert report.facts == {"events": "cpu-clock", "samples": str(count)}
    assert report.warnings == ()
    (stacks,) = report.stacks
    assert (stacks.title, stacks.unit) == ("cpu-clock", "s")
    for total in (sum(stacks.weights.values()), *(p.total for p in report.profiles)):
        assert total == pytest.approx(seconds, rel=1e-12)
    # Independently: the function on the line after each header is where the sample was taken, or what is inlined in it.
    inlined = r"(?:\s+[0-9a-f]+ [^\n]* \(inlined\)\n)*"
    innermost = re.findall(
        rf" cpu-clock: *\n{inlined}\s+[0-9a-f]+ (.*?)(?:\+0x[0-9a-f]+)? \((?!inlined)", text
    )
    assert len(innermost) == count
    own: Counter[str] = Counter()
    for hotspot in report.profiles[0].hotspots:
        symbol = hotspot.function
        if hotspot.library == PYTHON:
            symbol = f"py::{symbol}:{hotspot.file}"
        own[symbol] += round(hotspot.own / 0.001003009)
    assert +own == Counter(innermost)


def test_python_frames_of_a_recorded_313_are_told_apart_and_add_up(reports: Path):
    path = reports / "perf" / "vm-without-pmu-perf6.1" / "script.py313-perf_jit-dwarf.txt"
    blocks = path.read_text().strip().split("\n\n")
    report = read_script(path)
    outer = [h for h in report.profiles[0].hotspots if h.function == "outer"]
    assert [(h.library, h.file) for h in outer] == [(PYTHON, "/opt/example/cpu/pyrec.py")]
    assert outer[0].total == pytest.approx(sum("py::outer:" in b for b in blocks) * 0.001003009)
    frames = sum(frame.library == PYTHON for s in samples(path.read_text()) for frame in s.stack)
    assert frames == path.read_text().count(" py::") == 933  # the figure known from the recording


@pytest.mark.parametrize("name", OWN)
def test_own_recordings_are_sniffed_and_read_whole(name: str):
    path = DATA / name
    text = path.read_text()
    assert looks_like_script(path.read_bytes()[:HEAD])
    report = read_script(path)
    headers = re.findall(r"\d+\.\d{6}: +(\d+) +(\S+?): ", text)
    assert int(report.facts["samples"]) == len(headers)
    for stacks in report.stacks:
        weight = sum(int(period) for period, event in headers if event == stacks.title)
        assert sum(stacks.weights.values()) == pytest.approx(
            weight / (1e9 if stacks.unit == "s" else 1), rel=1e-12
        )
    assert all("user space only" in warning for warning in spoken_lines(report.warnings))
    assert len(spoken_lines(report.warnings)) == (" cpu-clock:u: " in text)


def test_two_events_in_one_recording_are_two_profiles_in_their_own_units():
    report = read_script(DATA / "script.two-events.txt")
    assert {(s.title, s.unit) for s in report.stacks} == {("cpu-clock", "s"), ("page-faults", "page-faults")}
    assert report.version == "6.1.187"
    assert report.facts["cpu"] == "AMD EPYC"
    assert "hostname" not in report.facts


def test_a_recording_without_stacks_has_one_frame_per_sample():
    report = read_script(DATA / "script.one-line.txt")
    assert {len(stack) for stacks in report.stacks for stack in stacks.weights} == {1}
    assert not any((NO_STACK,) in stacks.weights for stacks in report.stacks)
    faults = next(p for p in report.profiles if p.title == "page-faults by function")
    expected = re.findall(r" page-faults: +[0-9a-f]+ elf_load\+", (DATA / "script.one-line.txt").read_text())
    assert len(expected) == row(faults, "elf_load")[0] > 0


def test_inlined_functions_are_those_that_they_were_inlined_into():
    text = (
        "app 1 1.000000: 5 cycles: \n"
        "\t  10 hot+0x1 (inlined)\n\t  10 warm+0x1 (inlined)\n\t  10 outer+0x1 (/usr/lib/a.so)\n"
        "\t  20 start_main+0x2 (inlined)\n\t  30 _start+0x3 (/bin/app)\n\n"
    )
    for repeated in (text, text * 2):
        *_, last = samples(repeated)
        assert last.stack == (Frame("_start", "app"), Frame("outer", "a.so"))


SWITCH = "sched:sched_switch"
RAW = "cpu/event=0x29,umask=0x7,name=x/"
HEADERS = [
    ("bash  6425  1155.348554:    9 cycles: ", ("bash", 6425, None, None, 1155.348554, 9, "cycles")),
    ("python3 17/18 [003]  1.000001:  7 cycles:u: ", ("python3", 17, 18, 3, 1.000001, 7, "cycles:u")),
    (
        "Web Content 12 64/65 [000] 1.5000000:  7 cycles:ppp: ",
        ("Web Content 12", 64, 65, 0, 1.5, 7, "cycles:ppp"),
    ),
    ("my (app) 1/1 1.000000: 3 cpu_core/cycles/P: ", ("my (app)", 1, 1, None, 1.0, 3, "cpu_core/cycles/P")),
    (f"a 1/1 1.000000: 3 {RAW}: ", ("a", 1, 1, None, 1.0, 3, RAW)),
    (
        f"swapper     0 [001] 1.000000: {SWITCH}: prev_comm=a prev: b ==> c:1",
        ("swapper", 0, None, 1, 1.0, None, SWITCH),
    ),
    (":-1    -1  1.000000: 1 cycles: ", (":-1", -1, None, None, 1.0, 1, "cycles")),
    ("no-event 5  1.000000: ", ("no-event", 5, None, None, 1.0, None, None)),
    ("ünï 1 1.000000: 1 cycles: ", ("ünï", 1, None, None, 1.0, 1, "cycles")),
]


@pytest.mark.parametrize(("header", "fields"), HEADERS, ids=[h[:24] for h, _ in HEADERS])
def test_headers_of_every_shape(header: str, fields: tuple[object, ...]):
    (sample,) = samples(header + "\n\t    1f main+0x3 (/bin/app)\n\n")
    assert sample[:7] == fields
    assert sample.stack == (Frame("main", "app"),)


GENEXPR = "inner.<locals>.<genexpr>"
IMPORTLIB = "<frozen importlib._bootstrap>"
PUSH_BACK = "std::vector<int, std::allocator<int> >::push_back(int const&)"
FRAMES = [
    ("ffffffff815913aa filemap_read+0x2da ([kernel.kallsyms])", Frame("filemap_read", KERNEL)),
    ("0 [unknown] ([unknown])", Frame("[unknown]", None)),
    ("7f12 [unknown] (/usr/lib/libfoo.so.1)", Frame("[unknown]", "libfoo.so.1")),
    (f"1f {PUSH_BACK}+0x1 (/bin/app)", Frame(PUSH_BACK, "app")),
    ("1f operator()(int)+0x1 (/bin/app)", Frame("operator()(int)", "app")),
    (
        "1f (anonymous namespace)::f(char)+0x1f (/opt/my app (x86)/a.so)",
        Frame("(anonymous namespace)::f(char)", "a.so"),
    ),
    ("1f f+0x1 (/opt/gone.so (deleted))", Frame("f", "gone.so")),
    ("1f f+0x1 (/memfd:doublemapper (deleted))", Frame("f", "memfd:doublemapper")),
    ("1f f+0x1 (/opt/odd)name.so)", Frame("f", "odd)name.so")),
    ("1f f (/bin/app+0x1f)", Frame("f", "app")),
    ("1f main::{closure#0}+0x1 (/bin/rust)", Frame("main::{closure#0}", "rust")),
    ("1f py::outer:app/main.py+0xb (/run/jitted-17385-206.so)", Frame("outer", PYTHON, "app/main.py")),
    (f"1f py::{GENEXPR}:app/a b.py (/run/perf-1.map)", Frame(GENEXPR, PYTHON, "app/a b.py")),
    (f"1f py::_find:{IMPORTLIB}+0x1 (/run/perf-1.map)", Frame("_find", PYTHON, IMPORTLIB)),
    ("1f LazyCompile:~x+0x1 (/run/perf-99.map)", Frame("LazyCompile:~x", "[jit]")),
    ("1f xfs_read+0x1 (/lib/modules/6.1/kernel/fs/xfs/xfs.ko.xz)", Frame("xfs_read", "[xfs]")),
    ("1f nf_hook+0x1 ([nf_tables])", Frame("nf_hook", "[nf_tables]")),
    ("1f x+0x1 ([vdso])", Frame("x", "[vdso]")),
    ("1f x+0x1 (//anon)", Frame("x", "//anon")),
    ("1f main", Frame("main", None)),
    ("1f main(int, char**)", Frame("main(int, char**)", None)),
    ("1f", Frame("[unknown]", None)),
]


@pytest.mark.parametrize(("line", "frame"), FRAMES, ids=[line[:40] for line, _ in FRAMES])
def test_frames_of_every_shape(line: str, frame: Frame):
    (sample,) = samples(f"app 1 1.000000: 1 cycles: \n\t    {line}\n\n")
    assert sample.stack == (frame,)


TIMELESS = (
    b"java 19983 cycles:\nffffffff8103d0ca native_write_msr_safe ([kernel.kallsyms])\n"
    b"ffffffff81024282 x86_pmu_enable ([kernel.kallsyms])\n\n",
    b"# perf version : 3.13.11\nfoobar [worker]  7 cpu-clock: \n\t  67e2f0 my_func (/usr/bin/app)\n\n",
    b"app 7/8 [001]     250000 cycles:u: \n\t  67e2f0 my_func (/usr/bin/app)\n\n",
)


@pytest.mark.parametrize("sample", TIMELESS)
def test_samples_without_times_are_read(sample: bytes, tmp_path: Path):
    """As perf before 4.0 prints them, and perf script -F without `time`."""
    path = tmp_path / "script.txt"
    path.write_bytes(sample * 3)
    assert recognise_format(path).name == "perf-script"
    report = read_script(path)
    assert report.facts["samples"] == "3"
    own = next(profile for profile in report.profiles if profile.kind == "functions").hotspots[0]
    assert own.function in ("native_write_msr_safe", "my_func")


@pytest.mark.parametrize(
    "text",
    [
        b"all 123 target:\n\tgcc -c x.c\n",
        b"lines 1 total:\n\tabcdef0 (x)y\n",
        b"epoch 3 loss:\n  0.25 (best)\n",
    ],
)
def test_a_line_that_ends_with_a_colon_is_no_sample_without_its_stack(text: bytes):
    assert not looks_like_script(text * 9)


def test_source_lines_under_frames_are_passed_over(tmp_path: Path):
    frames = "\t  1f main+0x3 (/bin/app)\n  main.c:12\n\t  2f _start+0x1 (/bin/app)\n  ??:0\n\n"
    text = "app 1 1.000000: 1 cycles: \n" + frames
    report = read(tmp_path, text * 2)
    assert report.stacks[0].weights == {(Frame("_start", "app"), Frame("main", "app")): 2}
    assert report.warnings == ()


def test_lost_samples_are_said(tmp_path: Path):
    text = "app 1/1 1.000001: 1 cycles: \n\t  1f main (/bin/app)\n\n"
    report = read(tmp_path, "app 1/1 1.000000: PERF_RECORD_LOST lost 12\n" + text)
    assert report.facts["samples"] == "1"
    assert spoken_lines(report.warnings) == ("perf lost 12 samples while recording",)


EVENTS = (
    "cycles:u cycles:Pu cpu_core/cycles/u|cycles:uk cycles:ppp cpu-clock cpu_core/cycles/ sched:sched_switch"
)


def test_samples_of_our_own_thread_are_left_out_and_counted(tmp_path: Path):
    lines = [
        f"{name} 7 1.00000{n}: 1000 cpu-clock: 55 f (/bin/x)"
        for n, name in enumerate(["x", "x", "x", "profkit-sampler"])
    ]
    report = read(tmp_path, "\n".join(lines) + "\n")
    assert report.profiles[0].total == pytest.approx(3e-6)
    assert spoken_lines(report.warnings) == (
        "25.0 % of perf's samples were in profkit's own sampler and are left out",
    )


def test_an_event_of_user_space_only_says_so(tmp_path: Path):
    for events, user_only in zip(EVENTS.split("|"), (True, False), strict=True):
        for event in events.split():
            report = read(tmp_path, f"app 1/1 1.000001: 1 {event}: \n\t  1f main (/bin/app)\n\n")
            said = (f"{event}: user space only, without the time in the kernel",)
            assert spoken_lines(report.warnings) == (said if user_only else ())


TEXT = (DATA / "script.py313-jit.txt").read_bytes()
SAMPLE = b"app 1 1.000000: 1 cycles: \n\t  1f main+0x3 (/bin/app)\n\t  2f _start+0x1 (/bin/app)\n\n"
LINE = b"app 1 1.000000: 1 cycles: 1f main (/bin/app)\n"


@pytest.mark.parametrize(
    ("text", "count", "says"),
    [
        (
            SAMPLE * 3 + SAMPLE[:50],
            3,
            "in the middle of a line: it was cut off, and its last sample is skipped",
        ),
        (SAMPLE * 3 + SAMPLE[:-1], 4, "may be cut off"),
        (LINE * 3 + LINE[:30], 3, "cut off"),
    ],
)
def test_a_text_that_is_cut_keeps_its_whole_samples_and_says_so(
    tmp_path: Path, text: bytes, count: int, says: str
):
    report = read(tmp_path, text)
    assert report.facts["samples"] == str(count)
    assert says in spoken_lines(report.warnings)[0]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "holds no sample"),
        (b"hello world\n" * 100, "holds no sample"),
        (b"PERFILE2" + bytes(200), "binary file"),
        (SAMPLE + b"\0" * 10, "binary file"),
        (bytes(range(1, 256)) * 40, "holds no sample"),
        (b"# started on Fri Nov 20 2026\n\n1003,,cycles,100,100.00,,\n", "holds no sample"),
        (b'{"linux-perf-json-version": 1, "samples": []}', "holds no sample"),
        (b"app 1/1 1.000000: PERF_RECORD_LOST lost 12\n" * 3, r"lost all of them \(36\)"),
        (
            b"".join(b"app 1 1.000000: 1 event%d: \n\t 1f f (/bin/a)\n\n" % n for n in range(1100)),
            "1000 events",
        ),
    ],
)
def test_what_is_no_perf_script_is_refused_with_a_sentence(tmp_path: Path, data: bytes, says: str):
    with pytest.raises(UnreadableReport, match=says) as refusal:
        read(tmp_path, data)
    assert "script.txt" in refusal.value.message


@pytest.mark.parametrize(
    "foreign",
    [
        b"Nov 20 12:00:01 host kernel: [ 12.3] usb: new device\n",
        b"events: Ir Dr\nfl=(1) a.c\n",
        b"main;work 12\nmain 3\n",
        b"# Samples: 1K of event 'cycles'\n#\n# Overhead  Command\n 10.00% app\n",
    ],
)
def test_other_texts_do_not_look_like_perf_script(foreign: bytes):
    assert not looks_like_script(foreign)


HOSTILE = {
    "one endless line": b"a" * 3_000_000,
    "a header without end": b"app 1 " * 300_000,
    "digits without end": b"app " + b"1" * 2_000_000,
    "a frame without end": b"app 1 1.000000: 1 cycles: \n\t 1f " + b"(" * 1_000_000 + b")\n\n",
    "parentheses both ways": b"app 1 1.000000: 1 cycles: \n\t 1f " + b")(" * 200_000 + b")\n\n",
    "a stack without end": b"app 1 1.000000: 1 cycles: \n" + b"\t 1f f (/bin/a)\n" * 100_000,
    "spaces": b" " * 2_000_000 + b"\n",
    "a new function each line": b"".join(
        b"app 1 1.000000: 1 cycles: \n\t 1f f%d (/bin/a%d)\n\n" % (n, n) for n in range(20_000)
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_costs_seconds_at_most(tmp_path: Path, kind: str):
    start = time.process_time()
    with contextlib.suppress(UnreadableReport):
        read(tmp_path, HOSTILE[kind])
    assert time.process_time() - start < 5


def test_a_symbol_of_a_million_letters_is_cut() -> None:
    frame = parse_frame(b"401136 Run<" + b"T<int>, " * 125_000 + b">::go()+0x1 (/tmp/a)")
    assert frame is not None
    assert (frame.function[:8], len(frame.function)) == ("Run<T<in", 4096)
