"""analyze_multibackend.sh and wrappers/*.sh: what reaches profkit, and what comes back."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.shell.fronts import Project, send

ANALYZE, PERF, NCU, NSYS, XCTRACE = (
    "analyze_multibackend.sh",
    "wrappers/perf.sh",
    "wrappers/ncu.sh",
    "wrappers/nsys.sh",
    "wrappers/xctrace.sh",
)


@pytest.mark.parametrize(
    "words",
    [
        ("./a", "it's", 'say "hi"', "$HOME", "*", "\\", "`id`"),
        ("a", "", " ", "two\nlines", "-x", "--", "--report"),
    ],
)
@pytest.mark.parametrize(
    ("front", "tool"),
    [
        ((PERF,), "perf"),
        ((NCU,), "ncu"),
        ((NSYS,), "nsys"),
        ((ANALYZE, "cpu"), "perf"),
        ((ANALYZE, "cuda"), "ncu"),
        ((XCTRACE,), "xctrace"),
        ((ANALYZE, "mps"), "xctrace"),
    ],
)
def test_the_workload_arrives_word_by_word(
    project: Project, front: tuple[str, ...], tool: str, words: tuple[str, ...]
) -> None:
    done = project.call(*front, "my out.data", *words)

    assert done.returncode == 0, done.stderr
    recorded = project.told()[0]
    assert recorded[1:] == [
        "-m",
        "profkit",
        "record",
        "--tool",
        tool,
        "--report",
        "my out.data",
        "--",
        *words,
    ]
    assert (project.folder / "my out.data").exists()


def test_analyze_on_the_cpu_sums_up_the_report_and_judges_a_run_beside_it(project: Project) -> None:
    project.call(ANALYZE, "cpu", "out.data", "python", "a b")

    _, summarize, profile = (call[3:] for call in project.told())
    assert summarize == ["summarize", "out.data"]
    assert profile[:6] == ["profile", "--backend", "cpu", "--depth", "gate", "--check"]
    assert profile[6:] == ["--output", "out.data.runs", "--", "python", "a b"]


def test_analyze_on_a_gpu_judges_the_report_it_left(project: Project) -> None:
    for report, tool in (("out.ncu-rep", "ncu"), ("my out.nsys-rep", "nsys")):
        project.notes.unlink(missing_ok=True)
        done = project.call(ANALYZE, "cuda", report, "true", STUB_CODE_check="5")

        assert done.returncode == 5
        assert project.told()[0][5] == tool
        assert [call[3:] for call in project.told()][1:] == [["check", report]]


def test_one_kernel_is_counted_by_its_name_and_judged(project: Project) -> None:
    done = project.call("analyze.sh", "out.ncu-rep", "silu mul", "python", "a b")

    assert done.returncode == 0, done.stderr
    record, check = (call[3:] for call in project.told())
    asked = ["record", "--tool", "ncu", "--report", "out.ncu-rep", "--kernel", "silu mul"]
    assert record == [*asked, "--", "python", "a b"]
    assert check == ["check", "out.ncu-rep"]


@pytest.mark.parametrize("verb", ["record", "check"])
def test_the_exit_code_of_one_kernels_recording_and_verdict_comes_back(project: Project, verb: str) -> None:
    done = project.call("analyze.sh", "out.ncu-rep", "silu", "true", **{f"STUB_CODE_{verb}": "3"})
    assert done.returncode == 3
    assert project.call("analyze.sh", "out.ncu-rep", "silu").returncode == 2


def test_analyze_mixes_nothing_with_a_former_run(project: Project) -> None:
    (project.folder / "out.data.runs").mkdir()

    done = project.call(ANALYZE, "cpu", "out.data", "true")

    assert done.returncode == 2
    assert "out.data.runs is there already" in done.stderr
    assert project.told() == []


@pytest.mark.parametrize("code", [2, 3, 4, 130])
def test_a_recording_that_failed_is_not_judged_and_its_code_comes_back(project: Project, code: int) -> None:
    done = project.call(ANALYZE, "cpu", "out", "true", STUB_CODE_record=str(code))

    assert done.returncode == code
    assert [call[3] for call in project.told()] == ["record"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        ((ANALYZE,), "usage: analyze_multibackend.sh cuda|mps|cpu REPORT COMMAND"),
        ((ANALYZE, "cpu", "out"), "usage: analyze_multibackend.sh cuda|mps|cpu REPORT COMMAND"),
        ((ANALYZE, "gpu", "out", "true"), "unknown backend gpu: it is cuda, mps or cpu"),
        ((PERF,), "usage: perf.sh REPORT COMMAND"),
        ((NSYS, "out.nsys-rep"), "usage: nsys.sh REPORT COMMAND"),
    ],
)
def test_wrong_usage_is_told_in_a_sentence(project: Project, call: tuple[str, ...], sentence: str) -> None:
    done = project.call(*call)

    assert done.returncode == 2
    assert sentence in done.stderr
    assert project.told() == []


def test_they_work_through_a_link_and_from_any_folder(project: Project, tmp_path: Path) -> None:
    away = tmp_path / "some where"
    away.mkdir()
    (away / "analyze").symlink_to(project.folder / ANALYZE)
    (away / "again").symlink_to("analyze")

    done = project.call(away / "again", "cpu", "out.data", "true", cwd=away)

    assert done.returncode == 0, done.stderr
    assert (away / "out.data").exists()
    assert project.told()[0][0] == str(project.folder / ".venv/bin/python")


class TestWhichPythonHasProfkit:
    def test_the_one_that_was_named(self, project: Project, tmp_path: Path) -> None:
        named = project.stub(tmp_path / "named")

        project.call(PERF, "out", "true", PROFKIT_PYTHON=str(named))

        assert project.told()[0][0] == str(named)

    def test_else_the_active_environment(self, project: Project, tmp_path: Path) -> None:
        (project.folder / ".venv/bin/python").unlink()
        active = project.stub(tmp_path / "active/bin/python")

        project.call(PERF, "out", "true", VIRTUAL_ENV=str(tmp_path / "active"))

        assert project.told()[0][0] == str(active)

    def test_else_the_line_that_makes_one(self, project: Project) -> None:
        done = project.call(PERF, "out", "true", STUB_LACKS_PROFKIT="1", PATH="/usr/bin:/bin")

        assert done.returncode == 3
        assert "setup.sh" in done.stderr


class TestWhatPythonMeansInTheWorkload:
    """The fronts pass the word `python` on; the PATH they pass with it decides what it is."""

    def meaning(self, project: Project, **environment: str) -> str:
        project.stub(project.folder / ".venv/bin/python").write_text(
            '#!/bin/bash\n[ "$1" = -c ] && exit 0\ncommand -v python >"$STUB_NOTES"\n'
        )
        project.call(PERF, "out", "python", "x.py", **environment)
        return project.notes.read_text().strip()

    def test_without_an_active_environment_it_is_the_projects_own(self, project: Project) -> None:
        assert self.meaning(project) == str(project.folder / ".venv/bin/python")

    def test_an_active_environment_goes_first_though_path_has_lost_it(
        self, project: Project, tmp_path: Path
    ) -> None:
        active = project.stub(tmp_path / "active/bin/python")

        assert self.meaning(project, VIRTUAL_ENV=str(tmp_path / "active")) == str(active)

    def test_a_choice_that_was_made_for_the_user_is_told(self, project: Project) -> None:
        done = project.call(PERF, "out", "python", "x.py")

        assert f"no environment is active: python is {project.folder}/.venv/bin/python" in done.stderr


@pytest.mark.parametrize(
    ("number", "group", "noted"), [(signal.SIGINT, True, "INT"), (signal.SIGTERM, False, "TERM")]
)
def test_a_signal_reaches_profkit_and_its_end_is_waited_for(
    project: Project, number: signal.Signals, group: bool, noted: str
) -> None:
    process = subprocess.Popen(
        [str(project.folder / ANALYZE), "cpu", "out", "true"],
        env={**project.environment, "STUB_WAIT": "1"},
        cwd=project.folder,
        start_new_session=True,
        text=True,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while not Path(f"{project.notes}.waits").exists() and time.monotonic() < deadline:
        time.sleep(0.02)

    send(process, number, group=group)

    assert process.wait(60) == 130
    assert Path(f"{project.notes}.signal").read_text().strip() == noted
    assert [call[3] for call in project.told()] == ["record"]
