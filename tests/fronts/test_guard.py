"""Which commands `profkit mcp` runs: what starts is in a file below the folder, and no word of the call is code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from profkit.fronts.guard import leads_out, programs_of, runs_file_below
from tests.conftest import ROOT

RUN = (
    "python app.py --n 3",
    "python3.12 -X dev -W ignore app.py -c 1",
    "python3 -Xdev -bb -O -uB app.py",
    "python -I app.py",
    "python -m package --fast",
    "python -m package.part",
    "python -um package",
    "python -X importtime -m package",
    "python -m pytest tests -k fast",
    "python -m cProfile app.py",
    "python -m torch.distributed.run --nproc-per-node 2 app.py",
    "/opt/conda/bin/python app.py",
    ".venv/bin/python app.py",
    "./bench -c x",
    "build/bench --eval 1",
    "sh bench.sh -c 1",
    "bash -eu -o pipefail bench.sh",
    "perl -w app.py -e 1",
    "node --max-old-space-size=4096 app.py",
    "java -Xmx4g -jar app.py",
    "torchrun --standalone --nproc_per_node=2 app.py --lr 1",
    "torchrun --nnodes 1 --nproc-per-node gpu -m package",
    "accelerate launch --num_processes 2 app.py",
    "pytest",
    "pytest tests/test_a.py::test_b -x",
    "env OMP_NUM_THREADS=4 PYTHONPATH=src:lib python app.py",
    "nice -n 5 timeout -k 1 10s stdbuf -oL python -u app.py",
    "taskset -c 0-3,7 ./bench",
    "numactl --cpunodebind=0 -m 0 build/bench",
    "mpirun -np 2 --bind-to core ./bench",
    "uv run app.py",
    "uv run --frozen python -m package",
    "conda run -n torch python app.py",
    "time -v nohup ./bench",
)
REFUSED = (
    "python", "python -", "python -c code app.py", "python -X dev -c code app.py", "python -Ic code app.py",
    "python -bc code app.py", "python -Xdev -Bcprint() app.py", "python -W ignore -c code app.py",
    "python3.11 -c code app.py", "python3.13t -ccode app.py", "pypy3 -c code app.py", "env python -c code app.py",
    ".venv/bin/python -c code app.py", "python -m timeit code app.py", "python -m code app.py",
    "python -Im package", "python -I -m package", "python -P -m package", "python -m elsewhere app.py",
    "python -m torch.distributed.run --no-python sh -c code app.py", "python -m mpi4py -c code app.py",
    "python -m cProfile -m timeit app.py", "python -m",
    "sh -c code app.py", "sh -ec code app.py", "bash -lc code app.py", "bash -o pipefail -c code app.py",
    "dash -s app.py", "zsh -ic code app.py", "bash --rcfile app.py -i", "sh -- -c",
    "perl -e code app.py", "perl -ne code app.py", "perl -Mstrict app.py", "ruby -e code app.py",
    "node -e code app.py", "node --eval=code app.py", "node -p code app.py", "node --import=data:x app.py",
    "php -r code app.py", "lua -e code app.py", "java -XX:OnError=reboot app.py", "java @app.py",
    "awk code app.py", "sed -n 1e app.py", "find app.py -exec sh -c code", "xargs -I{} sh -c code app.py",
    "xargs sh app.py", "make --eval=code app.py", "make", "make -f app.py", "go run app.py", "deno run app.py",
    "java -cp . app.py", "java -cp . Main", "python -m timeit", "python -m http.server",
    "gdb -ex code app.py", "vim -c code app.py", "ssh host app.py",
    "timeout 5 sh -c code app.py", "nice -n 5 python -c code app.py", "stdbuf -oL bash -c code app.py",
    "nohup sh -ec code app.py", "setsid sh -c code app.py", "taskset -c 0 sh -c code app.py",
    "time -o app.py sh -c code", "env -S code app.py", "env -Sperl\\ -e\\ code/sh app.py",
    "env 'F=() { code; }' bash app.py", "env PYTHONSAFEPATH=1 python -m package", "env X=1", "env", "nice nice nice",
    "uv run sh -c code app.py", "uv run --with evil app.py", "conda run -n x sh -c code app.py",
    "torchrun --no-python sh -c code app.py", "torchrun --no_python sh app.py", "mpirun -n 2 sh -c code app.py",
    "accelerate launch -m timeit code app.py", "ls", "cat app.py", "app.py", "bench", "./missing", "./package", "./out",
    "python out", "python ../p/../other.py", "sh -c", "eval app.py", "busybox sh -c code app.py", "", "''",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    for name in (
        "package/__init__.py",
        "package/part.py",
        "tests/test_a.py",
        "build/bench",
        "bench",
        "app.py",
        "bench.sh",
        "-c",
        "+c",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (root / ".venv/bin").mkdir(parents=True)
    (root / ".venv/bin/python").symlink_to("/usr/bin/env")
    (tmp_path / "other.py").write_text("")
    (root / "out").symlink_to(tmp_path / "other.py")
    return root


@pytest.mark.parametrize("line", RUN)
def test_a_command_that_runs_a_file_of_the_folder_is_taken(line: str, folder: Path) -> None:
    command = shlex.split(line)
    assert runs_file_below(command, folder, folder)
    others = [word for place, word in enumerate(command) if place not in programs_of(command)]
    assert not [word for word in others if leads_out(word, folder, folder)]


@pytest.mark.parametrize("line", REFUSED)
def test_a_command_with_code_in_its_words_or_without_a_file_is_refused(line: str, folder: Path) -> None:
    assert not runs_file_below(shlex.split(line), folder, folder)


def test_a_module_or_a_script_that_is_a_link_out_of_the_folder_is_refused(folder: Path) -> None:
    (folder / "away.py").symlink_to(folder.parent / "other.py")
    assert not runs_file_below(["python", "-m", "away"], folder, folder)
    assert not runs_file_below(["python", "away.py"], folder, folder)
    assert not runs_file_below(["uv", "run", "away.py"], folder, folder)


def test_a_path_out_of_the_folder_is_seen_behind_an_equals_sign_and_no_word_is_a_fault(folder: Path) -> None:
    assert leads_out("--data=/etc/passwd", folder, folder)
    assert leads_out("../other.py", folder, folder)
    assert not leads_out("--data=/no/such/file", folder, folder)
    (folder / "loop").symlink_to("loop")
    for word in ("x" * 5000, "loop", "--text=" + "y/" * 3000, "\udcff"):
        assert not leads_out(word, folder, folder)
        assert not runs_file_below(["python", word], folder, folder)
    assert not runs_file_below(["python", "app.py", "a\0b"], folder, folder)


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_what_the_page_on_agents_names_is_taken_with_a_file_and_what_it_refuses_is_not(folder: Path) -> None:
    page = (ROOT / "docs" / "agents.md").read_text().partition("## What it runs")[2]
    forms = re.findall(r"(?m)^\| (.+) \| .+ \|$", page)
    (interpreters,) = (quoted(form) for form in forms if "interpreter" in form)
    (ranks,) = (form.split(", and as modules ") for form in forms if form.startswith("ranks"))
    (before,) = (form.split(", or `run` of ") for form in forms if " behind " in form)
    lines = [*interpreters, *quoted(ranks[0]), *(f"python -m {name}" for name in quoted(ranks[1]))]
    first = {"taskset": "taskset 1", "timeout": "timeout 5"}
    lines += [f"{first.get(name, name)} python" for name in quoted(before[0])]
    lines += [f"{name} run python" for name in quoted(before[1])]
    assert len(lines) > 40
    refused = quoted(page.partition("known to contain no code are accepted: ")[2].partition(" Put such")[0])
    assert {"java -cp", "go run", "deno", "make", "python -m timeit"} <= set(refused)
    for line in (*lines, *refused):
        assert runs_file_below([*line.split(), "app.py"], folder, folder) is (line not in refused), line
