"""What is guessed of a command before it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.backends.cuda import cuda_evidence
from profkit.core.types import Workload
from profkit.profiling.workload import seems_marked


@pytest.mark.parametrize(
    ("command", "marked"),
    [
        (("python", "-c", "import profkit; profkit.region('a')"), True),
        (("python", "-c", "from profkit import region"), True),
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
        (("python", "train.py", "--device=cpu"), None),
        (("python", "plain.py", "--backend", "cuda"), "its arguments say cuda"),
        (("python", "plain.py", "--device=cuda:1"), "its arguments say --device=cuda:1"),
        (("python", "plain.py"), None),
        (("python", "-c", "import cupy"), "its program names cupy"),
        (("torchrun", "--nproc-per-node", "2", "plain.py"), "torchrun starts it"),
        (("./made-with-cuda",), "made-with-cuda holds .nv_fatbin"),
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
    assert cuda_evidence(Workload(command, "w", str(tmp_path), python)) == why
