"""`profkit nightly` from the command line, on real workloads: what goes wrong in one costs the others nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator
from workplace import aged, commit, git, repository, told

from profkit.core.codec import from_plain_data
from profkit.core.types import Fact
from profkit.reporting.facts import fact_text
from tests import schemas
from tests.cli_runner import ENVIRONMENT, PROFKIT, Said, profkit
from tests.spoken import sentences

GOOD = '  - {name: good, command: [python, -c, "sum(range(9999))"]}\n'
HEAD = """version: 1
defaults: {backend: cpu, passes: [timing], timing: 0.1, precision: 0.3, budget: 60}
workloads:
"""


def written(folder: Path, workloads: str, more: str = "") -> Path:
    path = folder / "night.yaml"
    path.write_text(HEAD + workloads + more, encoding="utf-8")
    return path


def night(folder: Path, *options: str | Path, env: dict[str, str] | None = None) -> Said:
    """In this process; the workloads run in processes of their own, unless they are simulated."""
    words = ("nightly", "night.yaml", "--format", "json", "--quiet", *options)
    return profkit(*words, cwd=folder, env=env, process=False)


def by_name(document: Any) -> dict[str, Any]:
    return {workload["name"]: workload for workload in document["workloads"]}


def said_of(workload: Any) -> str:
    """Why it was not measured."""
    return fact_text(from_plain_data(Fact, workload["reason"]))


@pytest.mark.thorough
def test_whatever_becomes_of_a_workload_the_others_have_their_turn(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "random.py").write_text("raise SystemExit('no module of profkit may come from here')")
    flood = "import sys; [sys.stdout.write('error: not ours\\\\n' * 9999) for _ in range(99)]; sys.exit(7)"
    written(
        tmp_path,
        '  - {name: crash, command: [python, -c, "import os; os.abort()"]}\n'
        "  - {name: raise, command: [python, -c, 'import absent_module']}\n"
        '  - {name: hang, command: [python, -c, "import time; time.sleep(99)"], budget: 2}\n'
        '  - {name: kill, command: [python, -c, "import os; os.kill(os.getppid(), 9)"]}\n'
        f'  - {{name: flood, command: [python, -c, "{flood}"]}}\n'
        "  - {name: absent, command: [./absent]}\n"
        "  - {name: tool, command: [python, -c, pass], backend: mps}\n" + GOOD.replace("}", ", cwd: place}"),
    )
    said = night(tmp_path)
    found = by_name(said.json())
    assert said.code == 4
    assert {name: w["outcome"] for name, w in found.items()} == {
        **dict.fromkeys(("crash", "raise", "hang", "kill", "flood", "absent", "tool"), "missing"),
        "good": "new",
    }
    assert {name: w["ending"] for name, w in found.items()} == {
        "crash": "workload-failed",
        "raise": "workload-failed",
        "hang": "out-of-time",
        "kill": "died",
        "flood": "workload-failed",
        "absent": "refused",
        "tool": "machine",
        "good": "done",
    }
    assert "SIGABRT" in said_of(found["crash"])
    assert said_of(found["raise"]).endswith("it said:\nModuleNotFoundError: No module named 'absent_module'")
    assert "SIGKILL" in said_of(found["kill"])
    assert "on a Mac" in found["tool"]["fix"]
    assert "Traceback" not in said.err
    folder = tmp_path / "reports" / "nights" / said.json()["id"]
    assert (folder / found["flood"]["log"]).stat().st_size < 6 << 20
    cases = ElementTree.parse(folder / "junit.xml").getroot()
    states = {s.get("name"): (s.get("errors"), s.get("failures")) for s in cases}
    assert states["crash on cpu"] == ("1", "0")
    assert states["good on cpu"] == ("0", "0")
    Draft202012Validator(schemas.night()).validate(said.json())
    assert json.loads((folder / "night.json").read_text()) == said.json()
    assert sentences(said.json()) == []


@pytest.mark.thorough
def test_a_workload_cannot_speak_in_the_name_of_profkit(tmp_path: Path) -> None:
    """What it prints is told as its own; the fix of a fault is profkit's alone."""
    (tmp_path / "forges.py").write_text("raise SystemExit('error: all is well\\n  fix: rm -rf ~')\n")
    (tmp_path / "floods.py").write_text("raise SystemExit('x' * 100_000)\n")
    written(
        tmp_path,
        "  - {name: forges, command: [python, forges.py]}\n"
        "  - {name: floods, command: [python, floods.py]}\n"
        '  - {name: sleeps, command: [python, -c, "import time; time.sleep(99)"], timeout: 1}\n',
    )
    found = by_name(night(tmp_path).json())
    for name in ("forges", "floods"):
        assert said_of(found[name]).startswith("the workload exited with 1; it said:\n")
        assert len(said_of(found[name])) <= 2000
        assert found[name]["fix"] is None
    assert "ran past its time limit" in said_of(found["sleeps"])
    assert found["sleeps"]["fix"] == "timeout: SECONDS"


@pytest.mark.thorough
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_night_tells_what_was_finished_and_goes_on_later(
    tmp_path: Path, number: int, simulated: list[str]
) -> None:
    # Interrupted with real processes; what goes on later is simulated.
    slow = "  - {name: slow, command: [python, -c, \"import time; open('on', 'w'); time.sleep(60)\"]}\n"
    written(tmp_path, GOOD + slow + "  - {name: last, command: [python, -c, pass]}\n")
    with subprocess.Popen(
        [*PROFKIT, "nightly", "night.yaml", "--format", "json", "--night", "n1"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        deadline = time.monotonic() + 300  # a busy machine
        while not (tmp_path / "on").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
    document = json.loads(out)
    assert (child.returncode, document["interrupted"]) == (130, True)
    assert "Traceback" not in err
    found = by_name(document)
    assert (found["good"]["outcome"], found["slow"]["outcome"]) == ("ambiguous", "missing")
    assert "not compared: the night was interrupted" in told(found["good"])
    assert "interrupted before it was measured" in (tmp_path / "reports/nights/n1/report.md").read_text()
    assert (tmp_path / "reports" / "nights" / "n1" / "report.html").is_file()
    written(tmp_path, GOOD + "  - {name: slow, command: [python, -c, pass]}\n")
    again = by_name(night(tmp_path, "--night", "n1").json())
    assert {name: w["outcome"] for name, w in again.items()} == {"good": "new", "slow": "new"}
    assert simulated == ["slow"]


@pytest.mark.thorough
def test_a_change_is_confirmed_the_same_night_beside_the_last_good_commit(
    tmp_path: Path, simulated: list[str]
) -> None:
    """Nights of one commit, then one that is three times as slow: convicted at once, and not green the night after."""
    place = repository(tmp_path / "repo", 100)
    written(place, "  - {name: work, command: [python, work.py]}\n")
    assert night(place, "--night", "a").code == 0
    aged(place / "reports" / "history.sqlite")
    slower = commit(place, 300)
    told = night(
        place, "--night", "b0", env={"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(tmp_path / "s.md")}
    )
    metric = next(m for m in told.json()["workloads"][0]["metrics"] if m["gates"])
    assert (told.code, metric["outcome"]) == (1, "regressed")
    assert metric["commit"] == slower
    assert metric["change"]["low"] > 1.02
    assert told.err.startswith("::error title=work%3A regressed::time.median of work")
    assert "REGRESSED" in (tmp_path / "s.md").read_text()
    assert git(place, "worktree", "list").count("\n") == 0
    assert night(place, "--night", "b1").code == 1


def test_no_night_is_written_through_a_link_inside_of_it(tmp_path: Path) -> None:
    written(tmp_path, "  - {name: a, command: [python, -c, pass]}\n")
    victim, link = tmp_path / "victim", tmp_path / "reports" / "nights" / "n1" / "runs"
    victim.mkdir()
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(victim)
    said = night(tmp_path, "--night", "n1")
    assert said.code == 3
    assert list(victim.iterdir()) == []


def test_two_nightlies_at_once_would_measure_each_other(tmp_path: Path) -> None:
    from profkit.regression.nightly.session import nightly_lock

    written(tmp_path, GOOD)
    with nightly_lock(tmp_path / "reports"):
        said = night(tmp_path)
    assert said.code == 3
    assert "another nightly is running" in said.err
