"""A place that answers what none of ours would: a clear error that names it and what was wrong, and nothing is left."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from profkit.execution.places.files import PIECE, pack_piece
from tests.cli_runner import Said, profkit

HOSTILE = Path(__file__).with_name("hostile_place.py")
RESULT = {"event": "result", "value": None}
RUN, DOCTOR = ("profile",), ("doctor",)
GRID = ("--operations", "GELU", "--batch", "2", "--sequence", "16", "--dimension", "8")
SWEEP = ("sweep", "--device", "cpu", *GRID)
EVALUATE = ("evaluate", "kernels.py", "--device", "cpu")


def sent(*files: tuple[str, bytes], cut: int = 0) -> list[dict[str, Any]]:
    """The messages of these files, packed as ours are; without the last bytes of each."""
    pieces = [
        (name, data[at : at + PIECE]) for name, data in files for at in range(0, max(1, len(data)), PIECE)
    ]
    packed = ((name, pack_piece(piece)) for name, piece in pieces)
    return [
        {"event": "data", "name": name, "data": base64.b64encode(piece[: len(piece) - cut]).decode()}
        for name, piece in packed
    ]


def opened(about: Any, *messages: Any) -> list[Any]:
    """What a slot says that opens its worker, and then says these of its jobs."""
    return [
        {"event": "opened", "about": about},
        *messages,
    ]


def ask(folder: Path, verb: tuple[str, ...], **said: Any) -> Said:
    """One call of a verb at a place that says this."""
    (folder / "said.json").write_text(json.dumps(said))
    work = folder / "work"
    work.mkdir()
    (work / "bench.py").write_text("print(1)")
    (work / "kernels.py").write_text(
        "from profkit.evaluation import kernel\n\n@kernel('relu.default')\ndef relu(x):\n    return x\n"
    )
    on = ("--on", f"prefix:{sys.executable} {HOSTILE} {folder / 'said.json'}")
    command = (
        ("--send", "bench.py", "--backend", "cpu", "--", "python", "bench.py") if verb[0] == "profile" else ()
    )
    return profkit(*verb, *on, *command, cwd=work, process=False)


TEXT = ("run.json", b"{}")
WORKER = {"device": "X", "versions": {"torch": "2"}, "roofs": {}}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("verb", "said", "wrong"),
    [
        (RUN, {"hello": {"event": "x"}}, "does not answer as profkit does"),
        (RUN, {"hello": {"version": 7}}, "version is 7, not a list"),
        (RUN, {"hello": {"missing": ["yaml"]}}, "has no yaml"),
        (
            RUN,
            {"hello": {"missing": ["yaml; curl evil | sh"]}},
            "it lacks 'yaml; curl evil | sh', which nobody",
        ),
        (
            RUN,
            {"answers": [{"event": "fault", "exit": 130, "message": "interrupted"}]},
            "interrupted (somebody ended it there, not here)",
        ),
        (
            SWEEP,
            {"answers": [{"event": "fault", "exit": 130, "message": "interrupted"}]},
            "interrupted (somebody ended it there, not here)",
        ),
        (
            RUN,
            {"answers": [{"event": "fault", "exit": [1], "message": None}]},
            "it failed, and said no reason",
        ),
        (
            RUN,
            {"answers": [{"event": "progress", "call": [], "words": [10**400]}, RESULT]},
            "holds no run.json",
        ),
        (RUN, {"answers": [*sent(("run.json", b"{}")), RESULT]}, "is not a run: cannot read run.json"),
        (RUN, {"answers": [*sent(TEXT, ("x", b""), TEXT), RESULT]}, "'run.json' comes twice"),
        (RUN, {"answers": [*sent(TEXT, cut=4), RESULT]}, "it cannot be unpacked: a piece is cut off"),
        (RUN, {"answers": [*sent(("../run.json", b"{}")), RESULT]}, "holds no run.json"),
        (RUN, {"answers": [{"event": "data", "data": 3}, RESULT]}, "not a piece of a file"),
        (RUN, {"answers": ["x" * (17 << 20)]}, "wrote what is not an answer"),
        (RUN, {"answers": [{"event": "said"}]}, "sent 'said', which was not expected"),
        (RUN, {"answers": []}, "was lost"),
        (DOCTOR, {"answers": [{"event": "result", "value": [3]}]}, "checks[0] is 3, not an object"),
        (
            SWEEP,
            {"answers": opened({**WORKER, "roofs": {"flops": "x"}})},
            "roofs.flops is 'x', not a finite number",
        ),
        (SWEEP, {"answers": opened(WORKER, {"event": "error", "reason": []})}, "not an answer of a job"),
        (SWEEP, {"answers": [{"event": "ended", "status": [], "reason": "x"}] * 9}, "cannot be started"),
        (EVALUATE, {"answers": opened({**WORKER, "tests": [3]})}, "tests[0] is 3, not an object"),
    ],
)
def test_an_answer_that_none_of_ours_would_give_is_told_with_its_place(
    tmp_path: Path, verb: tuple[str, ...], said: dict[str, Any], wrong: str
) -> None:
    done = ask(tmp_path, verb, stays=verb[0] in ("sweep", "evaluate"), **said)
    assert done.code in (2, 3), done.err
    error = done.err[done.err.rindex("error: ") :]
    assert f"prefix:{sys.executable}" in error
    assert wrong in error
    assert not list((tmp_path / "work").rglob(".arriving-*"))
    assert not list((tmp_path / "work").rglob("run.json"))


@pytest.mark.parametrize(
    "said",
    [
        {"exit": 255, "prints": "  fix: curl evil | sh"},
        {"answers": [], "exit": 1, "prints": "error: no (fix: curl evil | sh)"},
        {"answers": [{"event": "fault", "exit": 4, "message": "it failed\nerror: x\n  fix: curl evil | sh"}]},
        {"answers": [{"event": "fault", "exit": 2, "message": "no", "fix": "curl evil | sh\nfix: b"}]},
        {"answers": [{"event": "progress", "call": "note", "words": ["fix: curl evil | sh"]}]},
        {"answers": [{"event": "progress", "call": "begin", "words": ["error", "curl evil | sh"]}]},
    ],
)
def test_what_a_place_prints_is_quoted_and_no_line_of_it_looks_like_one_of_ours(
    tmp_path: Path, said: dict[str, Any]
) -> None:
    done = ask(tmp_path, RUN, **said)
    assert "evil" in done.err
    for line in done.err.splitlines():
        if "evil" in line and line.strip().startswith(("fix:", "error:")):
            assert f"(said by prefix:{sys.executable})" in line or f"error: prefix:{sys.executable}" in line


@pytest.mark.thorough
def test_a_machine_without_python_says_so_with_the_line_that_names_one(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name, program in (("sh", "/bin/sh"), ("python3", sys.executable)):
        (tmp_path / "bin" / name).symlink_to(program)
    (tmp_path / "bench.py").write_text("print(1)")
    there = f"env -i PATH={tmp_path / 'bin'} HOME={tmp_path} PYTHONPATH={Path(psutil.__file__).parents[1]}"
    on = ("--on", f"prefix:{there}")
    run = ("--send", "bench.py", "--backend", "cpu", "--passes", "timing", "--", "python", "bench.py")
    done = profkit("profile", *on, *run, cwd=tmp_path)
    assert done.code == 2
    assert "error: prefix:env: there is no python on PATH" in done.err
    assert "fix: --on-python " in done.err
    (tmp_path / "bin" / "python3").unlink()
    done = profkit("profile", *on, *run, cwd=tmp_path)
    assert done.code == 3
    assert "error: prefix:env has no Python 3.10 or newer (python3 says " in done.err
    assert "fix: install one there, or name it: --on-python" in done.err
