"""`profkit compare` as a user calls it: real runs of this machine, recorded reports, and files that are none."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.run_folder import write_run
from profkit.core.types import RunDocument
from tests.cli_runner import profkit
from tests.comparison_documents import run
from tests.conftest import ROOT
from tests.spoken import sentences

NCU = ROOT / "tests" / "data" / "cuda" / "ncu"
NSYS = ROOT / "tests" / "data" / "cuda" / "nsys"
WORK = """
import sys
import profkit

def parse(n):
    return sum(len(str(i)) for i in range(n))

profkit.benchmark(lambda: parse(int(sys.argv[1]) if len(sys.argv) > 1 else 2000), name="parse")
"""


def saved(folder: Path, name: str, document: RunDocument) -> Path:
    target = folder / name
    target.mkdir()
    write_run(target, document)
    return target


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A run, the same again, and a slower one; in folders with odd names."""
    return (
        saved(tmp_path, "base line", run()),
        saved(tmp_path, "it's again", run(seed=2)),
        saved(tmp_path, "<slow>", run(0.1, seed=3)),
    )


def test_the_exit_code_says_same_regressed_or_improved(runs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    base, again, slow = runs
    assert profkit("compare", base, again, cwd=tmp_path).code == 0
    assert profkit("compare", base, slow, cwd=tmp_path).code == 1
    assert profkit("compare", slow, base / "run.json", cwd=tmp_path).code == 0


def test_json_is_one_document_whatever_comes_of_it(runs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    said = profkit("compare", *runs[::2], "--format", "json", cwd=tmp_path)
    assert said.json()["outcome"] == "regressed"
    assert sentences(said.json()) == []
    assert said.err == ""
    broken = profkit("compare", runs[0], tmp_path / "nothing", "--format", "json", cwd=tmp_path)
    assert broken.code == 2
    assert broken.json()["schema"] == "profkit.error/1"


def test_a_refusal_ends_with_5_and_force_decides(runs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    document = run(0.1, seed=3)
    assert document.machine is not None
    other = saved(tmp_path, "other", replace(document, machine=replace(document.machine, cores=96)))
    said = profkit("compare", runs[0], other, cwd=tmp_path)
    assert said.code == 5
    assert "usable cores (2 against 96)" in said.out
    assert profkit("compare", runs[0], other, "--force", cwd=tmp_path).code == 1


def test_recorded_reports_of_a_gpu_are_compared_among_their_own(tmp_path: Path) -> None:
    again = profkit("compare", NCU / "truths.full.ncu-rep", NCU / "truths.gate.ncu-rep", cwd=tmp_path)
    assert again.code == 0  # one program on one device, counted twice: nothing may be called different
    assert "What changed" not in again.out
    other = profkit("compare", NSYS / "hostbound.sqlite", NSYS / "truths.sqlite", "-f", "json", cwd=tmp_path)
    words = {kernel["word"] for kernel in other.json()["kernels"]}
    assert {"appeared", "vanished"} <= words
    mixed = profkit("compare", NSYS / "hostbound.sqlite", NCU / "truths.gate.ncu-rep", cwd=tmp_path)
    assert mixed.code == 5


def test_twice_the_work_under_callgrind_is_a_regression_without_any_samples(tmp_path: Path) -> None:
    """A recorded report, and the same with every cost doubled."""
    report = ROOT / "tests" / "data" / "valgrind" / "kernels.l2.callgrind"
    costs = re.compile(r"^((?:[+*-]?\d*|calls=\d+ [+*-]?\d*|summary:|totals:) )(\d[\d ]*)$", re.MULTILINE)

    def doubled(found: re.Match[str]) -> str:
        return found[1] + " ".join(str(2 * int(count)) for count in found[2].split())

    changed = tmp_path / "changed.callgrind"
    changed.write_text(costs.sub(doubled, report.read_text()))
    said = profkit("compare", report, changed, "-f", "json", cwd=tmp_path)
    assert said.code == 1, said.err
    document = said.json()
    (work,) = [
        cause for cause in document["causes"] if cause["kind"] == "work" and cause["scope"]["kind"] == "run"
    ]
    assert work["what"]["code"].startswith("more-work")
    assert {function["word"] for function in document["functions"]} == {"slower"}


@pytest.mark.thorough
@pytest.mark.timed
def test_real_runs_of_this_machine_are_the_same_and_a_real_slowdown_is_one(tmp_path: Path) -> None:
    """A busy machine may leave the times open, but never calls one and the same program different."""
    (tmp_path / "work.py").write_text(WORK)
    (tmp_path / "slower.py").write_text(WORK.replace("2000", "3000"))
    folders = []
    for script in ("work.py", "work.py", "slower.py"):
        options = ("--passes", "timing", "--sampling", "0.3", "--precision", "0.03", "--format", "json")
        # In processes of their own: what a child holds at most is counted from what its parent held when it forked.
        said = profkit("profile", *options, "--", "python", script, cwd=tmp_path, process=True)
        assert said.code == 0, said.err
        document = said.json()
        assert document["packages"]["python"]
        assert document["revision"]["reason"]
    folders = sorted((tmp_path / "reports").iterdir())
    again = profkit("compare", folders[0], folders[1], "-f", "json", cwd=tmp_path)
    different = [change for change in json.loads(again.out)["changes"] if change["word"] == "different"]
    assert again.code in (0, 5)
    assert different == []
    slower = profkit("compare", folders[0], folders[2], cwd=tmp_path)
    assert slower.code in (1, 5)
    assert "program: python work.py -> python slower.py" in slower.out
