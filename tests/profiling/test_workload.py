"""What is guessed of a command before it runs."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from pathlib import Path

import pytest
from cli_runner import profkit

from profkit.backends.cuda import cuda_evidence
from profkit.core.types import Fact, Revision, Workload
from profkit.profiling.workload import default_name, read_revision, seems_marked
from profkit.runtime.passes.command import reads_program_from_input
from tests.git_repository import git
from tests.spoken import spoken


@pytest.mark.parametrize(
    ("command", "marked"),
    [
        (("python", "-c", "import profkit; profkit.region('a')"), True),
        (("python", "marked.py"), True),
        (("python", "plain.py"), False),
        (("/home/me/profkit/.venv/bin/python", "plain.py"), False),
        (("python", "plain.py", "--cache", "/data/profkit"), False),
    ],
)
def test_a_workload_seems_marked_by_what_it_imports_and_not_by_where_it_lies(
    tmp_path: Path, command: tuple[str, ...], marked: bool
) -> None:
    (tmp_path / "marked.py").write_text("import profkit\n")
    (tmp_path / "plain.py").write_text("print(1)\n")
    assert seems_marked(Workload(command, "w", str(tmp_path))) is marked


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (("python", "train.py"), "train.py names cuda"),
        (("python", "train.py", "--device", "cpu"), None),  # what its arguments say comes first
        (("python", "plain.py", "--backend", "cuda"), "its arguments contain cuda"),
        (("python", "plain.py"), None),
        (("python", "-c", "import cupy"), "its program names cupy"),
        (("torchrun", "--nproc-per-node", "2", "plain.py"), "torchrun starts it"),
        (("./made-with-cuda",), "made-with-cuda contains .nv_fatbin"),
        (("./script-about-cuda",), None),
        (("true",), None),
    ],
)
def test_a_workload_seems_to_use_a_gpu_by_its_arguments_its_text_or_what_it_is_linked_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], why: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("model = Net().to('cuda')\n")
    (tmp_path / "plain.py").write_text("print(1)\n")
    for name, content in (
        ("made-with-cuda", b"\x7fELF..nv_fatbin."),
        ("script-about-cuda", b"#!/bin/sh\n# .nv_fatbin"),
    ):
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o755)
    python = "/usr/bin/python" if command[0] == "python" else None
    evidence = cuda_evidence(Workload(command, "w", str(tmp_path), python))
    assert spoken(evidence) == (why or "")


# ------------------------------------------------------------ test_revision

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit of a script, and a remote that nobody may learn of."""
    folder = tmp_path / "a repository's folder"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "remote", "add", "origin", "https://token@secret.example/alice.git")
    (folder / "bench.py").write_text("pass\n")
    git(folder, "add", "bench.py")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def of(folder: Path, *command: str) -> Revision:
    return read_revision(Workload(command or ("python", "bench.py"), "bench", str(folder)))


def test_a_repository_is_told_by_commit_and_dirty_where_a_file_of_it_changed(
    repository: Path,
) -> None:
    assert of(repository) == Revision(git(repository, "rev-parse", "HEAD"), False)
    (repository / "new.txt").write_text("x")
    assert of(repository).dirty is False
    (repository / "bench.py").write_text("pass  # changed\n")
    assert of(repository).dirty is True


def test_the_script_s_repository_counts_wherever_it_is_called_from(repository: Path, tmp_path: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    assert of(tmp_path, "python", str(repository / "bench.py")).commit == head
    assert of(tmp_path, "python", "-O", os.path.join(repository.name, "bench.py"), "-n", "3").commit == head


def test_a_repository_without_a_commit_and_a_folder_without_a_repository(tmp_path: Path) -> None:
    assert spoken(of(tmp_path).reason) == "no git repository"
    git(tmp_path, "init", "-q", "-b", "main")
    assert of(tmp_path).commit is None
    assert spoken(of(tmp_path).reason) == "a git repository without a commit"


def test_a_git_that_does_not_answer_is_not_waited_for(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow.parent}{os.pathsep}{os.environ['PATH']}")
    begin = time.monotonic()
    found = read_revision(Workload(("python", "bench.py"), "bench", str(repository)), seconds=0.2)
    assert found == Revision(reason=Fact.of("no-commit-here", said="it takes too long"))
    assert time.monotonic() - begin < 10


def test_variables_of_a_hook_do_not_name_another_repository(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = git(repository, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert of(repository).commit == head


# ------------------------------------------------------------ test_standard_input

QUICK = (
    "profile",
    "--backend",
    "cpu",
    "--sampling",
    "0.1",
    "--depth",
    "gate",
    "--precision",
    "0.5",
    "--quiet",
)
SCRIPT = "import sys\nwith open('ran.txt', 'a') as file:\n    file.write(f'{sys.argv} {sys.path[0]!r}\\n')\n"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("python -", True),
        ("python", True),
        ("python -O - a b", True),
        ("python x.py -", False),
        ("python -c pass", False),
        ("cat", False),
    ],
)
def test_a_program_that_comes_by_standard_input_is_known_by_its_command(command: str, answer: bool) -> None:
    assert reads_program_from_input(command.split()) is answer


def test_a_program_from_standard_input_without_one_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    for verb in (QUICK, ("record", "--tool", "perf", "--report", "x.data")):
        said = profkit(*verb, "--", sys.executable, "-", cwd=tmp_path)
        assert said.code == 2
        assert "standard input, but only a program in a file can be profiled" in said.err
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------ its name


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("uv run one.py", "one"),
        ("uv run --with numpy two.py -n 3", "two"),
        ("uv run python -m pkg.mod", "mod"),
        ("bash job1.sh", "job1"),
        ("sh -e ./job1.sh", "job1"),
        ("python -m torch.distributed.run --nproc-per-node 2 train.py", "train"),
        ("torchrun --nproc-per-node 2 train.py", "train"),
        ("python -m cProfile -o x.prof train.py", "train"),
        ("python app.pyz", "app"),
        ("python tool --fast", "tool"),
        ("python -O bench/x.py --n 3", "x"),
        ("python -m pkg.mod", "mod"),
        ("python -c print(1)", "python-c"),
        ("env A=1 python x.py", "x"),
        ("timeout 5 nice -n 5 python x.py", "x"),
        ("pixi run -e gpu python x.py", "x"),
        ("uv run -m pkg.tool", "tool"),
        ("mpiexec -n 2 --bind-to core sleep 1", "sleep"),
        ("ipython -i x.py", "x"),
        ("torchrun --standalone --nnodes=1 -m pkg.train conf.py", "train"),
        ("accelerate launch --num_processes 2 x.py -m 3", "x"),
        ("coverage run -m pytest tests", "pytest"),
        ("jsrun -n1 -g1 python x.py", "x"),
        ("singularity exec --nv image.sif python x.py", "x"),
        ("systemd-run --scope -p MemoryMax=4G python x.py", "x"),
        ("streamlit run app.py --server.port 80", "app"),
        ("Rscript --vanilla fit.R 3", "fit"),
        ("java -Xmx2g -jar app.jar", "app"),
        ("node --expose-gc server.js", "server"),
        ("julia -t 4 bench.jl", "bench"),
        ("./prog --fast", "prog"),
        ("sh -c true", "sh"),
        ("sh -c 'python ask.py < FILE'", "ask"),
        ("sh -c 'rm -rf results; python once.py'", "once"),
        ("bash -ec 'cd x; python -m pkg.mod'", "mod"),
        ("bash -c 'echo \\\"no end'", "bash"),
        ("bash -c 'cd x && FOO=1 python -m pkg.mod'", "mod"),
        ("sh -c 'python x.py'", "x"),
        ("bash", "bash"),
        ("python", "python"),
    ],
)
def test_a_run_is_called_after_the_program_and_not_after_what_starts_it(command: str, name: str) -> None:
    assert default_name(shlex.split(command)) == name


def test_a_command_as_one_string_is_refused_with_the_line_that_works(tmp_path: Path) -> None:
    done = profkit("profile", "--", "python bench.py --n '3 4'", cwd=tmp_path)
    assert done.code == 2
    assert "fix: profkit profile -- python bench.py --n '3 4'" in done.err
