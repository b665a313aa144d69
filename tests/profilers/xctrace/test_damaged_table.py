"""One table that is cut off, among others that are: told and not read, and refused where it is what counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.xctrace.report import read_exports
from tests.cli_runner import profkit
from tests.xctrace_tables import duration, export, node, number, process, text, time

ME = process("python3.12", 812)
INTERVALS, STATES, THERMAL = (
    "metal-gpu-intervals",
    "metal-gpu-state-intervals",
    "device-thermal-state-intervals",
)
COUNTERS = "metal-gpu-counter-intervals"
SPAN = (("start", "start-time"), ("duration", "duration"))
TABLES = {
    INTERVALS: (
        (*SPAN, ("process", "process"), ("gpu", "gpu-name"), ("cmdbuffer-id", "metal-object-label")),
        [
            [time(n * 1000), duration(400), ME, text("gpu-name", "M1"), number("uint64", n + 1)]
            for n in range(200)
        ],
    ),
    STATES: (
        (*SPAN, ("state", "gpu-state"), ("gpu", "gpu-name")),
        [
            [
                time(n * 500),
                duration(500),
                text("gpu-state", ("Active", "Idle")[n % 2]),
                text("gpu-name", "M1"),
            ]
            for n in range(400)
        ],
    ),
    THERMAL: (
        (*SPAN, ("thermal-state", "thermal-state"), ("track-label", "string")),
        [
            [time(n * 1000), duration(1000), text("thermal-state", "Nominal"), text("string", "Current")]
            for n in range(200)
        ],
    ),
    COUNTERS: (
        (*SPAN, ("name", "string"), ("value", "fixed-decimal")),
        [
            [time(n * 1000), duration(1000), text("string", "ALU"), number("fixed-decimal", 5)]
            for n in range(200)
        ],
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recording whose files are all whole."""
    folder = tmp_path / "trace.xctrace"
    folder.mkdir()
    listed = "".join(f'<table schema="{schema}"/>' for schema in TABLES)
    (folder / "toc.xml").write_text(
        '<?xml version="1.0"?><trace-toc><run number="1"><info><target><process name="python3.12" pid="812"/></target>'
        f"<summary><duration>0.01</duration></summary></info><data>{listed}</data></run></trace-toc>"
    )
    for place, (schema, (columns, rows)) in enumerate(TABLES.items(), 1):
        (folder / f"{schema}.xml").write_bytes(export(node(schema, columns, rows, position=place)))
    return folder


def cut(folder: Path, schema: str, *, share: float = 0.5) -> Path:
    path = folder / f"{schema}.xml"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    return path


@pytest.mark.parametrize("share", [0.9, 0.5, 0.012])
def test_a_table_that_is_cut_off_costs_no_other(folder: Path, share: float) -> None:
    whole = read_exports(folder)
    cut(folder, THERMAL, share=share)
    report = read_exports(folder)
    assert whole.metal is not None
    assert report.metal is not None
    assert whole.metal.thermal
    assert not report.metal.thermal
    assert (report.metal.process_busy, report.metal.device_busy) == (80e-6, 100e-6)
    (absent,) = [one for one in report.metal.absent if one.what == THERMAL]
    assert absent.reason.startswith("the table is damaged: cut off after ")
    assert absent.fix is not None
    assert f"--output {THERMAL}.xml" in absent.fix
    assert report.warnings[0].startswith(f"{THERMAL}.xml ({THERMAL}) is damaged and not read: cut off after ")
    assert "xctrace export --input TRACE" in report.warnings[0]


def test_rows_of_a_table_before_its_end_are_not_counted(folder: Path) -> None:
    """Counters are summed up as they come: half of them would say something of half of the time."""
    cut(folder, COUNTERS)
    report = read_exports(folder)
    assert report.metal is not None
    assert report.metal.counters == ()


def test_several_damaged_tables_are_all_told(folder: Path) -> None:
    cut(folder, THERMAL)
    path = folder / f"{COUNTERS}.xml"
    path.write_bytes(path.read_bytes().replace(b"</row>", b"</raw>", 7))
    told = read_exports(folder).warnings
    assert [THERMAL in note or COUNTERS in note for note in told[:2]] == [True, True]
    assert "no well-formed XML" in "".join(told[:2])


@pytest.mark.parametrize("schema", [INTERVALS, STATES])
@pytest.mark.parametrize("share", [0.5, 0.012])
def test_a_table_that_the_numbers_are_made_of_is_refused(folder: Path, schema: str, share: float) -> None:
    cut(folder, schema, share=share)
    with pytest.raises(UnreadableReport, match="cut off") as caught:
        read_exports(folder)
    assert schema in caught.value.message
    assert caught.value.fix is not None


@pytest.mark.parametrize("share", [0.5, 0.012])
def test_the_only_table_is_refused(folder: Path, share: float) -> None:
    for schema in (INTERVALS, STATES, THERMAL):
        (folder / f"{schema}.xml").unlink()
    cut(folder, COUNTERS, share=share)
    with pytest.raises(UnreadableReport, match="cut off"):
        read_exports(folder)


def test_one_file_alone_is_refused(folder: Path) -> None:
    with pytest.raises(UnreadableReport, match="cut off"):
        read_exports(cut(folder, THERMAL))


def test_the_command_tells_it(folder: Path) -> None:
    cut(folder, THERMAL)
    done = profkit("summarize", folder, "--format", "json", cwd=folder.parent)
    assert done.code == 0, done.err
    assert any("is damaged and not read" in note for note in done.json()["notes"])
    cut(folder, INTERVALS)
    done = profkit("summarize", folder, cwd=folder.parent)
    assert done.code == 2
    assert "cut off" in done.err
    assert "fix: " in done.err
