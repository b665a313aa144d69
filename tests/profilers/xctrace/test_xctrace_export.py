"""A document becomes tables that can be read anywhere; what is private comes out of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from profkit.core.errors import MachineError, UsageError
from profkit.profilers.xctrace.export import export_document
from profkit.profilers.xctrace.report import read_exports, read_unexported
from profkit.profiling.scrub import scrub
from tests.conftest import ROOT
from tests.xctrace_stand_in import XCTRACE, Instruments, instruments

GPU, STATES = "metal-gpu-intervals", "metal-gpu-state-intervals"
M1 = ROOT / "tests" / "data" / "xctrace" / "m1"


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A document of a program that slept."""
    path = tmp_path_factory.mktemp("recorded") / "my run.trace"
    argv = [
        str(XCTRACE),
        "record",
        "--template",
        "Metal System Trace",
        "--output",
        str(path),
        "--launch",
        "--",
    ]
    subprocess.run([*argv, "/bin/sleep", "0.2"], check=True, capture_output=True)
    return path


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, **scenario: object) -> Instruments:
    found = instruments(folder, **scenario)
    for name, value in found.env.items():
        monkeypatch.setenv(name, value)
    return found


def test_the_tables_that_are_there_are_exported_and_told_one_by_one(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(tmp_path, monkeypatch)
    lines: list[str] = []
    done = export_document(document, tmp_path / "out", (GPU, "no-such-table", STATES), tell=lines.append)
    assert done.schemas == (GPU, STATES)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"toc.xml", f"{GPU}.xml", f"{STATES}.xml"}
    assert [line.split()[0:4] for line in lines] == [
        ["1", "of", "2", f"{GPU}:"],
        ["2", "of", "2", f"{STATES}:"],
    ]


@pytest.mark.parametrize(
    ("scenario", "reason"), [({"large": GPU}, "larger than"), ({"crash": GPU}, "xctrace crashed")]
)
def test_a_table_that_is_too_much_is_left_out_with_its_reason(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: dict[str, object], reason: str
) -> None:
    told(tmp_path, monkeypatch, **scenario)
    monkeypatch.setattr("profkit.profilers.xctrace.export.MOST_BYTES", 1_000_000)
    done = export_document(document, tmp_path / "out", (GPU, STATES))
    assert done.schemas == (STATES,)
    assert not (tmp_path / "out" / f"{GPU}.xml").exists()
    (left,) = read_unexported(tmp_path / "out")
    assert left.schema == GPU
    assert reason in left.reason


def test_a_document_that_was_not_finished_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told(tmp_path, monkeypatch)
    (tmp_path / "a.trace" / "Trace1.run").mkdir(parents=True)
    with pytest.raises(MachineError, match="the document was not finished"):
        export_document(tmp_path / "a.trace", tmp_path / "out", (GPU,))


@pytest.mark.parametrize("text", ["", "[]", "{", '[{"schema": 1}]', '{"a": 1}', "[1, 2]", "null"])
def test_a_note_of_what_was_left_out_that_cannot_be_read_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "left-out.json").write_text(text)
    assert read_unexported(tmp_path) == ()


# ---------------------------------------------------------------- scrubbed


def test_a_scrubbed_folder_reads_the_same_without_names(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    toc = (M1 / "toc.xml").read_text()
    toc = toc.replace('name="MacBook Air"', 'name="Ann\'s secret Mac"').replace(
        "--iters", "--key=/Users/ann/k"
    )
    toc = toc.replace("00000000-0000-0000-0000-000000000000", "A23CDF4E-484E-5C1F-A585-AA2FD5883BA6")
    (folder / "toc.xml").write_text(toc)
    for name in (GPU, STATES, "time-profile"):
        text = (
            (M1 / f"{name}.xml")
            .read_text()
            .replace("metal_probe", "secret_probe")
            .replace("Terminal", "Firefox")
        )
        (folder / f"{name}.xml").write_text(text.replace('path="/usr/lib/', 'path="/Users/ann/lib/'))
    (folder / "toc.xml").write_text((folder / "toc.xml").read_text().replace("metal_probe", "secret_probe"))
    done = scrub(folder, tmp_path / "out")
    everything = "".join(path.read_text() for path in (tmp_path / "out").iterdir())
    for private in ("Ann", "/ann", "A23CDF4E", "--key"):
        assert private not in everything, private
    before, after = read_exports(folder), read_exports(tmp_path / "out")
    assert before.metal is not None
    assert after.metal is not None
    assert after.metal.process_busy == before.metal.process_busy
    assert after.metal.device_busy == before.metal.device_busy
    assert after.metal.encoders == before.metal.encoders
    assert [h.function for h in after.profiles[0].hotspots] == [
        h.function for h in before.profiles[0].hotspots
    ]
    kinds = {removed.kind for removed in done.removed}
    assert {"command line", "host name", "identities of devices", "paths"} <= kinds


def test_a_document_is_not_scrubbed_and_says_what_can_be(document: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only text is scrubbed") as caught:
        scrub(document, tmp_path / "out")
    assert "export" in str(caught.value.fix)
    assert not (tmp_path / "out").exists()
