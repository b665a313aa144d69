"""What comes from another machine: what a pass leaves, by its own list, and nothing else."""

from __future__ import annotations

import os
import re
import stat
import sys
import tarfile
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profkit.backends import backend_named, backend_names
from profkit.backends.artifacts import run_files
from profkit.backends.passes import AbsentPass, Pass
from profkit.core.codec import json_text
from profkit.core.errors import UnreadableReport
from profkit.core.files.names import FileNames
from profkit.core.run_folder import run_to_json
from profkit.execution.places import files
from profkit.execution.places.files import ReceivedFiles, pack_piece, send_folder, unpack_piece
from profkit.profiling.record import report_files
from tests import documents
from tests.cli_runner import profkit
from tests.conftest import ROOT
from tests.places.test_hostile_answers import RESULT, RUN, ask, sent
from tests.what_comes_back import check_all_comes_back

DOCUMENT = run_to_json(documents.document())
PLANTED = (
    "artifacts/HEAD",
    "artifacts/config",
    "artifacts/objects/info/alternates",
    "artifacts/refs/heads/main",
    "artifacts/test_evil.py",
    "artifacts/__init__.py",
    "artifacts/conftest.pyc",
    "artifacts/sitecustomize.py",
    "artifacts/pytest.ini",
    "artifacts/setup.cfg",
    "artifacts/pyproject.toml",
    "artifacts/Makefile",
    "artifacts/CLAUDE.md",
    "artifacts/AGENTS.md",
    "artifacts/package.json",
    "artifacts/stacks.jsonl/test_evil.py",
    "artifacts/trace.trace/test_evil.py",
    "artifacts/trace.xctrace/pom.xml",
    "artifacts/../test_evil.py",
    "artifacts/timing-1.7.json\n",
    "artifacts/timing-1.٣.json",
    "Artifacts/stacks.jsonl",
    "logs/timing-1.log.py",
    "report.html",
    "conftest.py",
    "../test_evil.py",
    "/tmp/test_evil.py",
    "",
    "x" * 5000,
)


def run_json(**changes: Any) -> tuple[str, bytes]:
    """A whole document, and what a place makes of it."""
    return "run.json", json_text({**DOCUMENT, **changes}).encode()


@pytest.mark.parametrize("name", PLANTED)
def test_no_other_name_is_wanted(name: str) -> None:
    assert not run_files().wants(name)


def test_nothing_that_a_place_plants_is_kept_and_one_line_names_it(tmp_path: Path) -> None:
    planted = [(name, b"import os") for name in PLANTED]
    answers = [*sent(*planted, ("artifacts/stacks.jsonl", b"{}"), run_json()), RESULT]
    done = ask(tmp_path, RUN, answers=answers)
    assert done.code == 0, done.err
    (run,) = (tmp_path / "work" / "reports").iterdir()
    kept = {path.relative_to(run).as_posix() for path in run.rglob("*") if path.is_file()}
    assert kept == {"run.json", "report.md", "report.html", "artifacts/stacks.jsonl"}
    assert not any(path.stat().st_mode & 0o111 for path in run.rglob("*") if path.is_file())
    (line,) = [line for line in done.err.splitlines() if "left out" in line]
    assert "'artifacts/HEAD', 'artifacts/config', 'artifacts/objects/info/alternates' and 26 more" in line
    assert f"prefix:{sys.executable}" in done.err
    assert {path.name for path in tmp_path.rglob("*") if "evil" in path.name} == set()


def test_a_run_that_somebody_interrupts_there_is_kept_and_is_no_ctrl_c_here(tmp_path: Path) -> None:
    done = ask(tmp_path, RUN, answers=[*sent(run_json(state="interrupted")), RESULT])
    assert done.code == 3, done.err
    assert "the run was ended at prefix:" in done.err
    (run,) = (tmp_path / "work" / "reports").iterdir()
    assert (run / "run.json").is_file()


@pytest.mark.parametrize("backend", ["cpu/../../ESCAPED", "../x", "other", ""])
def test_a_backend_that_there_is_not_is_refused_and_makes_no_folder(tmp_path: Path, backend: str) -> None:
    done = ask(tmp_path, RUN, answers=[*sent(run_json(backend=backend)), RESULT])
    assert done.code == 2
    assert f"there is no backend {backend!r}" in done.err
    assert not any("ESCAPED" in path.name for path in tmp_path.rglob("*"))
    assert not list((tmp_path / "work").rglob("run.json"))


@pytest.mark.thorough
def test_a_small_message_becomes_no_large_file_and_takes_no_memory(tmp_path: Path) -> None:
    bomb = zlib.compress(bytes(256 << 20), 9)
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableReport, match="become more than 64 times as many"):
            unpack_piece(bomb)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    wrong = [
        *(zlib.compress(piece) for piece in (bytes(5000), os.urandom(files.PIECE + 1))),
        zlib.compress(b"x") + b"y",
        b"",
    ]
    for piece in wrong:
        with pytest.raises(UnreadableReport):
            unpack_piece(piece)


@pytest.mark.parametrize(
    "piece", [b"", b"x", bytes(100), bytes(files.PIECE), b"the same\n" * 100_000, os.urandom(70_000)]
)
def test_every_piece_of_our_own_comes_through(piece: bytes) -> None:
    assert unpack_piece(pack_piece(piece)) == piece


@pytest.mark.parametrize(
    ("limit", "size"), [("LARGEST_BACK", 1000), ("MAX_BYTES_BACK", 3000), ("MAX_FILES_BACK", 1)]
)
def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, size: int) -> None:
    monkeypatch.setattr(files, limit, size)
    with pytest.raises(UnreadableReport, match=r"a file has more than|more than 1 files"):
        take(tmp_path, *sent(("artifacts/stacks.jsonl", os.urandom(2000)), ("unwanted", os.urandom(2000))))


def take(folder: Path, *messages: dict[str, Any], names: FileNames | None = None) -> list[str]:
    """Have the messages laid out; what was refused."""
    received = ReceivedFiles(folder, names or run_files())
    try:
        for message in messages:
            received.take(message)
    finally:
        received.close()
    return received.refused


# ---------------------------------------------------------------- nothing of our own is refused


def kinds_of_pass(of: type[Pass] = Pass) -> Iterator[type[Pass]]:
    """All that profkit has."""
    for kind in of.__subclasses__():
        if kind.__module__.startswith("profkit.") and kind is not AbsentPass and hasattr(kind, "name"):
            yield kind
        yield from kinds_of_pass(kind)


def test_each_pass_is_one_of_a_backends_and_says_what_its_steps_are_called() -> None:
    listed = {kind for name in backend_names() for kind in backend_named(name).pass_kinds()}
    bases = {base for kind in listed for base in kind.__mro__}
    for kind in kinds_of_pass():
        assert kind in bases, f"{kind} is in no `pass_kinds`: what it leaves would stay at another machine"
    composed = {"LinuxCounters"}  # its steps are those of other passes
    assert {kind.__name__ for kind in listed if not kind.step_names} == composed


MARKED = """
import os, profkit
if os.fork() == 0:
    profkit.benchmark(lambda: sum(range(2000)), name="child")
    os._exit(0)
os.wait()
with profkit.region("r"):
    sum(range(100_000))
"""
PLAIN = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(1_000_000))']); sum(range(1_000_000))"


@pytest.mark.thorough
@pytest.mark.valgrind
@pytest.mark.perf
@pytest.mark.parametrize(("script", "depth"), [(MARKED, "full"), (PLAIN, "standard")])
def test_all_that_the_tools_here_leave_is_wanted(tmp_path: Path, script: str, depth: str) -> None:
    (tmp_path / "w.py").write_text(script)
    quick = ("--precision", "0.5", "--sampling", "0.05", "--depth", depth, "--budget", "60")
    done = profkit("profile", "--backend", "cpu", *quick, "--", sys.executable, "w.py", cwd=tmp_path)
    assert done.code == 0, done.err
    (run,) = (tmp_path / "reports").iterdir()
    assert len(list((run / "artifacts").iterdir())) > 5
    check_all_comes_back(run)


def test_all_that_the_reference_names_is_wanted() -> None:
    table = (
        (ROOT / "docs" / "reference.md").read_text().partition("| pass | artifacts |")[2].partition("\n\n")[0]
    )
    named = re.findall(r"`([\w.<>-]+\.[\w.<>-]+/?)`", table)
    assert len(named) > 15
    for name in named:
        filled = re.sub("<n>|<pid>", "7", name.replace("<pass>", "trace")).replace(
            "toc.xml", "trace.xctrace/toc.xml"
        )
        if filled not in ("trace.xctrace/",):
            names, whole = run_files(), f"artifacts/{filled}"
            assert names.wants(whole) or names.is_document(whole), name


def test_a_document_of_instruments_comes_as_one_archive_and_its_exports_by_name(tmp_path: Path) -> None:
    run, back = tmp_path / "run", tmp_path / "back"
    back.mkdir()
    document, exports = (run / "artifacts" / f"trace.{end}" for end in ("trace", "xctrace"))
    (document / "Trace1.run" / "core").mkdir(parents=True)
    (document / "Trace1.run" / "core" / "bulkstore").write_bytes(b"x" * 5000)
    (document / "form.template").write_text("t")
    (document / "link").symlink_to("/etc/passwd")
    exports.mkdir()
    for name in ("toc.xml", "metal-gpu-intervals.xml", "region.77.json", "other.xml"):
        (exports / name).write_text(name)
    messages: list[dict[str, Any]] = []
    left = send_folder(run, run_files(), lambda name, piece: messages.append(files_message(name, piece)))
    assert left == ["artifacts/trace.xctrace/other.xml"]
    assert take(back, *messages) == []
    came = {path.relative_to(back / "artifacts").as_posix() for path in back.rglob("*") if path.is_file()}
    assert came == {
        "trace.trace.tar",
        "trace.xctrace/toc.xml",
        "trace.xctrace/metal-gpu-intervals.xml",
        "trace.xctrace/region.77.json",
    }
    with tarfile.open(back / "artifacts" / "trace.trace.tar") as tar:
        assert {member.name: member.size for member in tar if member.isreg()} == {
            "trace.trace/Trace1.run/core/bulkstore": 5000,
            "trace.trace/form.template": 1,
        }


def test_of_a_report_only_what_its_tool_leaves_is_wanted() -> None:
    perf, mac = report_files("perf", "out.data"), report_files("xctrace", "out.xctrace")
    assert perf.wants("out.data")
    assert not any(map(perf.wants, ("out.data/x", "out.dat", "other", "run.json")))
    assert mac.wants("out.xctrace/toc.xml")
    assert not any(map(mac.wants, ("out.xctrace/test_evil.py", "out.xctrace/a/toc.xml")))
    document = report_files("xctrace", "out.trace")
    assert document.is_document("out.trace")
    assert document.wants("out.trace.tar")
    assert not document.wants("out.trace/test_evil.py")


def test_what_is_left_at_a_place_is_regular_and_not_executable(tmp_path: Path) -> None:
    run, back = tmp_path / "run", tmp_path / "back"
    (run / "artifacts").mkdir(parents=True)
    back.mkdir()
    (run / "artifacts" / "stacks.jsonl").write_text("{}")
    (run / "artifacts" / "stacks.jsonl").chmod(0o777)
    (run / "artifacts" / "cprofile.prof").symlink_to("/etc/passwd")
    os.mkfifo(run / "artifacts" / "tracemalloc.json")
    messages: list[dict[str, Any]] = []
    left = send_folder(run, run_files(), lambda name, piece: messages.append(files_message(name, piece)))
    assert sorted(left) == ["artifacts/cprofile.prof", "artifacts/tracemalloc.json"]
    take(back, *messages)
    mode = (back / "artifacts" / "stacks.jsonl").stat().st_mode
    assert stat.S_ISREG(mode)
    assert not mode & 0o111


def files_message(name: str, piece: bytes) -> dict[str, Any]:
    """As `Home` sends it."""
    import base64

    return {"event": "data", "name": name, "data": base64.b64encode(piece).decode()}
