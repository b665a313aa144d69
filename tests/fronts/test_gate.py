"""`profkit gate`: what it finds and writes, and the shell of what it writes, as a forge runs it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from profkit.core.errors import UsageError
from profkit.fronts.gate import own_source, plan_gate, write_gate
from profkit.regression.nightly.config import read_config
from profkit.reporting.report_files import COMPARISON
from tests.cli_runner import call_in_process
from tests.conftest import ROOT
from tests.git_repository import git
from tests.regression.paired.suite_repository import repository

SOURCE = "profkit @ git+https://example.org/tools/profkit@0123abc"
SUITE = """version: 1
name: bench
workloads:
  - {name: slow, command: [python, slow.py]}
"""
FOUND = {
    "bench/run.py": "if __name__ == '__main__':\n    print()\n",
    "bench/test_helpers.py": "",
    "tests/test_speed.py": "def test_sort(benchmark):\n    benchmark(sorted, [1])\n",
    "tests/test_other.py": "def test_plain():\n    pass\n",
    "asv.conf.json": "{}",
    "benchmarks/__init__.py": "",
    "benchmarks/texts.py": "TEXT = 'what they import'\n",
    "benchmarks/sorts.py": "class Sort:\n    def time_it(self):\n        sorted([1])\n",
    "cpp/CMakeLists.txt": "target_link_libraries(my_bench PRIVATE benchmark::benchmark)\n",
    "pyproject.toml": "[project]\nname = 'x'\n",
}


def run(folder: Path, *line: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        line, cwd=folder, env={**around(folder), **env}, capture_output=True, text=True, timeout=300
    )


def around(folder: Path) -> dict[str, str]:
    """The environment in which a project's own `.venv` comes first, on no forge."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    path = f"{folder}/.venv/bin:{os.environ['PATH']}"
    return {**clean, "NO_COLOR": "1", "PYTHONPATH": str(ROOT), "PATH": path}


def gate(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    said = call_in_process(["gate", *words], folder, around(folder))
    return subprocess.CompletedProcess(words, said.code, said.out, said.err)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository of somebody with benchmarks of each kind."""
    folder = tmp_path / "p"
    for name, text in FOUND.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A pull request with the gate as it is checked out, the merge of `head` into `main`; profkit is on the PATH."""
    folder = repository(tmp_path / "r", SUITE)
    git(folder, "checkout", "-q", "main")
    git(folder, "merge", "-q", "--no-ff", "-m", "merge", "head")
    done = gate(folder, "--init", "--forge", "github", "--install", SOURCE)
    assert done.returncode == 0, done.stderr
    assert not (folder / "profkit.yaml").exists()  # the nightly's file is used
    stand_in(folder, f'exec "{sys.executable}" -m profkit "$@"')
    return folder


def stand_in(folder: Path, line: str) -> None:
    bin = folder / ".venv" / "bin"
    bin.mkdir(parents=True, exist_ok=True)
    (bin / "profkit").write_text(f"#!/bin/sh\n{line}\n")
    (bin / "profkit").chmod(0o755)


def document(path: Path) -> dict[str, Any]:
    made = yaml.safe_load(path.read_text())
    assert isinstance(made, dict)
    return made


def steps(folder: Path) -> list[dict[str, Any]]:
    made = document(folder / ".github/actions/profkit/action.yml")["runs"]["steps"]
    assert isinstance(made, list)
    return made


def compare(folder: Path, budget: str = "120", **env: str) -> subprocess.CompletedProcess[str]:
    """The step that compares, with what its workflow gives it."""
    (line,) = [one["run"] for one in steps(folder) if one["name"] == "Compare"]
    given = document(folder / ".github/workflows/profkit.yml")["jobs"]["compare"]["steps"][-1]
    assert given["uses"] == "./.github/actions/profkit"
    variables = {"SUITE": given["with"]["suite"], "BASE": "HEAD^1", "BUDGET": budget}
    quick = line.replace("--output", "--no-cause --output")
    return run(folder, "bash", "-e", "-c", quick, **variables, **env)


def test_each_kind_of_benchmark_becomes_a_workload_and_nothing_is_written_before_init(project: Path) -> None:
    shown = json.loads(gate(project, "--format", "json").stdout)
    assert git(project, "status", "--porcelain", "--untracked-files=all").count("??") == 0
    assert {each["name"]: each["kind"] for each in shown["workloads"]} == {
        "run": "script",
        "test_speed": "pytest-benchmark",
        "sorts": "asv",
        "my_bench": "Google Benchmark",
    }
    assert gate(project, "--init", "--install", SOURCE).returncode == 0
    suite = read_config(project / "profkit.yaml")
    assert [list(each.command) for each in suite.workloads] == [
        each["command"] for each in shown["workloads"]
    ]
    assert suite.pairs.setup[-1].endswith("cmake --build build -j2")  # the baseline is built, too
    setup = document(project / ".github/workflows/profkit.yml")["jobs"]["compare"]["steps"][2]["run"]
    assert setup.splitlines()[:2] == [
        "python -m pip install --quiet .",
        "python -m pip install --quiet pytest pytest-benchmark",
    ]
    again = gate(project, "--init", "--install", SOURCE)  # the suite is there: the same workflow
    assert again.returncode == 0, again.stderr


def test_what_it_cannot_do_is_refused_with_the_line_that_helps(project: Path, tmp_path: Path) -> None:
    (project / ".gitlab-ci.yml").write_text("stages: [test]\n")
    (project / ".gitlab").mkdir()
    (project / ".gitlab/profkit.yml").write_text("mine: {}\n")
    there = gate(project, "--init", "--install", SOURCE)
    assert (there.returncode, there.stderr.count("--force")) == (2, 1)
    assert not (project / "profkit.yaml").exists()
    done = gate(project, "--init", "--force", "--install", SOURCE)
    assert done.returncode == 0
    assert "local: .gitlab/profkit.yml" in done.stdout
    assert (project / ".gitlab-ci.yml").read_text() == "stages: [test]\n"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "git init" in gate(empty).stderr
    git(empty, "init", "-q")
    assert "fix: profkit gate --init -- python bench.py" in gate(empty).stderr


@pytest.mark.parametrize(
    ("origin", "installs"),
    [
        (None, "profkit==1.2"),
        (
            {"url": "https://h/o/p", "vcs_info": {"vcs": "git", "commit_id": "0a"}},
            "profkit @ git+https://h/o/p@0a",
        ),
        ({"url": "file:///here", "dir_info": {"editable": True}}, None),
    ],
)
def test_a_runner_installs_what_this_profkit_was_installed_from(
    origin: object, installs: str | None, monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    text = json.dumps(origin) if origin else None
    made = SimpleNamespace(read_text=lambda name: text, version="1.2")
    monkeypatch.setattr(importlib.metadata, "distribution", lambda name: made)
    assert own_source() == installs
    plan = plan_gate(project, "github", (), None)
    if installs is None:
        with pytest.raises(UsageError, match="no runner has"):
            write_gate(plan, force=False)
        assert not (project / "profkit.yaml").exists()
    else:
        assert f'profkit: "{installs}"' in plan.files[".github/workflows/profkit.yml"]


@pytest.mark.thorough
def test_the_comparison_of_github_runs_on_the_merge_and_fills_the_folder_that_is_kept(
    checkout: Path, tmp_path: Path
) -> None:
    summary = tmp_path / "summary.md"
    done = compare(checkout, "25", GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert done.returncode == 1, done.stderr
    kept = steps(checkout)[-1]["with"]["path"]
    assert sorted(path.name for path in (checkout / kept).iterdir()) == sorted(COMPARISON)
    assert summary.read_text().startswith("## ✗ WORSE: slow: time.median +")
    assert re.search(r"^::error title=slow%3A worse::time\.median", done.stderr, re.MULTILINE)


def test_what_is_not_decided_is_a_warning_and_no_red_job(checkout: Path) -> None:
    for code, ends, warns in ((0, 0, False), (1, 1, False), (4, 4, False), (5, 0, True)):
        stand_in(checkout, f"exit {code}")
        done = compare(checkout)
        assert (done.returncode, "::warning::" in done.stdout) == (ends, warns)
    text = (ROOT / "profkit/fronts/recipes/gitlab.yml").read_text()
    assert yaml.safe_load(text)["profkit-compare"]["allow_failure"] == {"exit_codes": [5]}


def test_code_of_the_pull_request_has_no_token_that_writes_and_every_action_is_pinned(checkout: Path) -> None:
    flow, told = (
        document(checkout / ".github/workflows" / name) for name in ("profkit.yml", "profkit-comment.yml")
    )
    assert flow["permissions"] == told["permissions"] == {}
    assert flow["jobs"]["compare"]["permissions"] == {"contents": "read"}
    assert flow["jobs"]["compare"]["steps"][0]["with"] == {"fetch-depth": 0, "persist-credentials": False}
    assert told["jobs"]["tell"]["permissions"] == {"actions": "read", "pull-requests": "write"}
    assert told[True]["workflow_run"]["workflows"] == [flow["name"]]  # YAML reads `on` as a truth value
    jobs = [flow["jobs"]["compare"]["steps"], told["jobs"]["tell"]["steps"], steps(checkout)]
    uses = [one["uses"] for job in jobs for one in job if "uses" in one]
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}|\./\.github/actions/profkit", name) for name in uses)
    assert not any("checkout" in one.get("uses", "") for one in told["jobs"]["tell"]["steps"])
    scripts = [one["run"] for job in jobs for one in job if "run" in one]
    assert not any("${{" in text for text in scripts)  # a name of a branch would be typed into the shell
    assert (ROOT / "action.yml").read_text() == (ROOT / "profkit/fronts/recipes/action.yml").read_text()


def test_the_comment_goes_to_the_request_that_github_names_and_is_written_anew(checkout: Path) -> None:
    line = document(checkout / ".github/workflows/profkit-comment.yml")["jobs"]["tell"]["steps"][1]["run"]
    (checkout / "profkit-report").mkdir()
    (checkout / "profkit-report/report.md").write_text("## slower\n")
    stand_in(checkout, "")
    gh = checkout / ".venv/bin/gh"
    gh.write_text(
        '#!/bin/sh\necho "$*" >> calls\ncase "$*" in *pulls*) echo 7;; *paginate*) echo 99;; esac\n'
    )
    gh.chmod(0o755)
    done = run(
        checkout, "bash", "-e", "-o", "pipefail", "-c", line,
        REPOSITORY="o/r", COMMIT="abc", BRANCH="fork:b",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    calls = (checkout / "calls").read_text().splitlines()
    assert "head=fork:b" in calls[0]
    assert calls[-1].endswith("--method PATCH repos/o/r/issues/comments/99 --field body=@comment.md")
    assert (checkout / "comment.md").read_text() == "<!-- profkit compare -->\n## slower\n"


@pytest.mark.skipif(
    importlib.util.find_spec("check_jsonschema") is None, reason="check-jsonschema is not installed"
)
def test_what_is_written_is_valid_by_the_published_schemas(project: Path) -> None:
    for forge in ("github", "gitlab"):
        assert gate(project, "--init", "--forge", forge, "--install", SOURCE).returncode == 0
    for schema, names in {
        "github-workflows": [str(path) for path in (project / ".github/workflows").iterdir()],
        "github-actions": [".github/actions/profkit/action.yml"],
        "gitlab-ci": [".gitlab/profkit.yml", ".gitlab-ci.yml"],
    }.items():
        words = ("-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *names)
        done = run(project, sys.executable, *words)
        assert done.returncode == 0, done.stdout


# ---------------------------------------------------------------- the suites that are there


def test_an_asv_suite_is_timed_as_asv_calls_it(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks/__init__.py").write_text("")
    (tmp_path / "benchmarks/a.py").write_text(
        "class Sort:\n    params = [[2, 3], ['x']]\n"
        "    def setup(self, n, kind):\n        if n == 3: raise NotImplementedError\n        self.n = n\n"
        "    def time_it(self, n, kind):\n        assert self.n == n\n"
        "class Once(Sort):\n    number = 1\n    params = [2], [0]\n"
        "    def time_it(self, n, kind):\n        del self.n\n"
        "    def track_it(self, n, kind):\n        raise SystemExit(3)\n"
    )
    line = (sys.executable, "-m", "profkit.fronts.suites", "benchmarks/a.py")
    directive = json.dumps({"pass_name": "timing", "record": str(tmp_path / "run"), "sampling": 0.05})
    done = run(tmp_path, *line, PROFKIT_DIRECTIVE=directive)
    assert done.returncode == 0, done.stderr
    (record,) = [json.loads(path.read_text()) for path in tmp_path.glob("run.*.json")]
    assert [each["name"] for each in record["benchmarks"]] == ["Sort.time_it(2, 'x')"]
    assert [(each["name"], each["entries"]) for each in record["regions"]] == [("Once.time_it(2, 0)", 10)]
    (tmp_path / "benchmarks/a.py").write_text("")
    assert "no time_*" in run(tmp_path, *line).stderr


def test_what_asv_takes_for_no_benchmark_is_none_and_one_that_raises_is_one_failure(tmp_path: Path) -> None:
    """Abstract classes, marks that skip, a cache of nothing, `setup` of the module, names in capitals."""
    (tmp_path / "b.py").write_text(
        "from abc import ABC, abstractmethod\nmade = []\n"
        "def setup(*_): made.append('module')\n"
        "class Base(ABC):\n    @property\n    @abstractmethod\n    def obj(self): ...\n"
        "    def time_do(self): assert self.obj and 'module' in made\n"
        "class Real(Base):\n    obj = 10\n"
        "class Cached:\n    params = [1, 2]\n    calls = []\n"
        "    def setup_cache(self):\n        assert not self.calls.append(1)\n"
        "    def time_one(self, n): assert len(self.calls) == 2\n"
        "    @classmethod\n    def time_of_class(cls, n): assert cls is Cached\n"
        "class Suite:\n    def TimeCamel(self): pass\n    def Timeless(self): raise SystemExit(3)\n"
        "    def time_no(self): raise SystemExit(3)\n    time_no.skip_benchmark = True\n"
        "def time_some(n): assert n == 1\ntime_some.params, time_some.skip_params = [1, 2], [(2,)]\n"
        "def time_broken(): raise ValueError('no data')\n"
        "def time_skips(): raise NotImplementedError\n"
        "def time_after(): pass\n"
        "time_number = 3\n"
    )
    directive = json.dumps({"pass_name": "timing", "record": str(tmp_path / "run"), "sampling": 0.02})
    done = run(tmp_path, sys.executable, "-m", "profkit.fronts.suites", "b.py", PROFKIT_DIRECTIVE=directive)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last == "1 of 9 benchmarks failed: time_broken: ValueError: no data"
    (record,) = [json.loads(path.read_text()) for path in tmp_path.glob("run.*.json")]
    assert [each["name"] for each in record["benchmarks"]] == [
        "Real.time_do", "Cached.time_of_class(1)", "Cached.time_of_class(2)", "Cached.time_one(1)",
        "Cached.time_one(2)", "Suite.TimeCamel", "time_some(1)", "time_after",
    ]  # fmt: skip


@pytest.mark.skipif(
    importlib.util.find_spec("pytest_benchmark") is None, reason="pytest-benchmark is not installed"
)
def test_the_fixture_of_pytest_benchmark_times_by_profkit(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        "def test_call(benchmark):\n    assert benchmark(sorted, [2, 1]) == [1, 2]\n"
        "def test_rounds(benchmark):\n    made = []\n"
        "    benchmark.pedantic(made.append, setup=lambda: ((1,), {}), rounds=5, warmup_rounds=2)\n"
        "    assert len(made) == 7\n"
        "    assert benchmark.stats.stats.rounds == 5\n"
        "def test_stats(benchmark):\n    benchmark(sum, range(10000))\n"
        "    assert 0 < benchmark.stats.stats.mean < 1\n"
    )
    line = ("-m", "pytest", "-q", "-p", "profkit.fronts.suites", "--benchmark-only", "test_x.py")
    directive = json.dumps({"pass_name": "timing", "record": str(tmp_path / "run"), "sampling": 0.05})
    done = run(tmp_path, sys.executable, *line, PROFKIT_DIRECTIVE=directive)
    assert done.returncode == 0, done.stdout
    (record,) = [json.loads(path.read_text()) for path in tmp_path.glob("run.*.json")]
    assert [each["name"] for each in record["benchmarks"]] == ["test_call", "test_stats"]
    assert [(each["name"], each["entries"]) for each in record["regions"]] == [("test_rounds", 5)]


ADDOPTS = ["--benchmark-disable", "--benchmark-skip"]
ADDOPTS += ["-n auto", "-n 2 --benchmark-disable"] if importlib.util.find_spec("xdist") is not None else []


@pytest.mark.skipif(
    importlib.util.find_spec("pytest_benchmark") is None, reason="pytest-benchmark is not installed"
)
@pytest.mark.parametrize("addopts", ADDOPTS)
def test_benchmarks_run_whatever_addopts_of_the_project_says(tmp_path: Path, addopts: str) -> None:
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = {addopts}\n")
    (tmp_path / "test_x.py").write_text("def test_call(benchmark):\n    benchmark(sorted, [2, 1])\n")
    line = ("-m", "pytest", "-q", "-p", "profkit.fronts.suites", "--benchmark-only", "test_x.py")
    directive = json.dumps({"pass_name": "timing", "record": str(tmp_path / "run"), "sampling": 0.05})
    done = run(tmp_path, sys.executable, *line, PROFKIT_DIRECTIVE=directive)
    assert done.returncode == 0, done.stdout
    (record,) = [json.loads(path.read_text()) for path in tmp_path.glob("run.*.json")]
    assert [each["name"] for each in record["benchmarks"]] == ["test_call"]


@pytest.mark.parametrize(
    "name",
    [
        "null",
        "yes",
        "on",
        "True",
        "no",
        "~",
        "1e3",
        "0x1f",
        "12",
        "a: b",
        "\x7f",
        "é",
        "it's",
        "2026-01-01",
    ],
)
def test_a_workload_keeps_its_name_whatever_yaml_takes_that_for(project: Path, name: str) -> None:
    (project / f"{name}.py").write_text("print(1)")
    done = gate(project, "--init", "--install", SOURCE, "--", "python", f"{name}.py", name)
    assert done.returncode == 0, done.stderr
    (workload,) = read_config(project / "profkit.yaml").workloads
    assert (workload.name, workload.command) == (name, ("python", f"{name}.py", name))


@pytest.mark.parametrize(
    "step", [".github", ".github/workflows", ".github/workflows/profkit.yml", "profkit.yaml"]
)
def test_a_gate_is_written_through_no_link(project: Path, tmp_path: Path, step: str) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (project / step).parent.mkdir(parents=True, exist_ok=True)
    (project / step).symlink_to(elsewhere / "new" if "." in step[1:] else elsewhere)
    done = gate(project, "--init", "--force", "--forge", "github", "--install", SOURCE)
    assert done.returncode == 2
    assert f"error: {step} is a link to {elsewhere}" in " ".join(done.stderr.split())
    assert "fix: cd " in done.stderr
    assert list(elsewhere.iterdir()) == []
    status = git(project, "status", "--porcelain", "--untracked-files=all").splitlines()
    assert [line for line in status if line.startswith("??")] == [f"?? {step}"]
