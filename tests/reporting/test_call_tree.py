"""`--tree`: the call tree of a run in the terminal, a library's frames as one, small ones left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.analysis.stacks.files import write_speedscope
from profkit.analysis.stacks.merge import PYTHON
from profkit.cli.options import OutputFormat, print_tree
from profkit.core.errors import UsageError
from profkit.core.types import Frame, Stacks
from profkit.reporting import terminal
from profkit.reporting.views.call_tree import view

MAIN, WORK, CALLBACK, SMALL = (
    Frame(name, PYTHON, "/app/app.py", line)
    for name, line in (("main", 1), ("work", 9), ("callback", 20), ("small", 30))
)
LIBRARY = "/usr/lib/python3.11/site-packages/pandas/core/frame.py"
APPLY, INNER = Frame("DataFrame.apply", PYTHON, LIBRARY, 9), Frame("_standard", PYTHON, LIBRARY, 99)
STACKS = Stacks(
    "Python, wall time of the main thread",
    "s",
    {
        (MAIN, WORK): 6.0,
        (MAIN, APPLY, INNER): 1.0,
        (MAIN, APPLY, INNER, CALLBACK): 2.5,
        (MAIN, SMALL): 0.05,
        (MAIN,): 0.45,
    },
)


def run_folder(folder: Path, *stacks: Stacks) -> Path:
    (folder / "artifacts").mkdir()
    write_speedscope(stacks, folder / "artifacts" / "stacks.speedscope.json", "app")
    return folder


def test_the_tree_goes_from_the_entry_point_down_with_share_and_time(tmp_path: Path) -> None:
    text = terminal.render(view(run_folder(tmp_path, STACKS)), color=False, width=80)
    assert [line.rstrip() for line in text.split("\n") if " s  " in line or " ms  " in line] == [
        "  100.0 %  10.0 s  main (app.py)",
        "   60.0 %  6.00 s    work (app.py)",
        "   35.0 %  3.50 s    pandas.core.frame.apply",
        "   25.0 %  2.50 s      callback (app.py)",
    ]


def test_of_a_program_that_waits_the_wall_time_is_shown(tmp_path: Path) -> None:
    running = Stacks("Python, processor time of all threads", "s", {(MAIN, WORK): 1.0, (MAIN,): 1.0})
    text = terminal.render(view(run_folder(tmp_path, running, STACKS)), color=False, width=80)
    assert STACKS.title in text
    assert running.title not in text


def test_a_run_without_stacks_is_a_sentence_with_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no sampled stacks") as refused:
        view(tmp_path)
    assert refused.value.fix is not None
    assert "--passes timing,stacks" in refused.value.fix
    with pytest.raises(UsageError, match="--tree is for people"):
        print_tree(run_folder(tmp_path, STACKS), OutputFormat.json)
