"""The command as the user typed it: can it be started, what is it called, which Python runs it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from profkit.core.errors import UsageError
from profkit.core.types import Workload
from profkit.runtime.passes.command import find_interpreter


def describe(command: Sequence[str], name: str | None = None) -> Workload:
    """The workload that `command` is. Raises UsageError where it cannot be started at all."""
    if not command:
        raise UsageError(
            "no workload: put its command after `--`", "profkit profile -- python your_script.py"
        )
    program = command[0]
    if not program.strip():
        raise UsageError(
            f"the workload's command is empty: {program!r}", "profkit profile -- python your_script.py"
        )
    if shutil.which(program) is None:
        try:
            mode = os.stat(program).st_mode
        except PermissionError as error:
            raise UsageError(f"the workload {program} cannot be reached: {error.strerror}") from error
        except (OSError, ValueError):
            mode = 0
        if stat.S_ISDIR(mode):
            raise UsageError(f"the workload {program} is a folder, not a command")
        if mode:
            raise UsageError(f"the workload {program} is not executable", f"chmod +x {shlex.quote(program)}")
        raise UsageError(f"the workload {program} is not there: no such command on PATH and no such file")
    try:
        folder = os.getcwd()
    except OSError as error:
        raise UsageError("the folder you are in is gone", "cd to one that exists") from error
    return Workload(tuple(command), name or _name(command), folder, find_interpreter(command))


def _name(command: Sequence[str]) -> str:
    """`python -O bench/x.py --n 3` is called `x`, `python -m pkg.mod` `mod`, `./prog --fast` `prog`."""
    if find_interpreter(command) is not None:
        for position, word in enumerate(command[1:], start=1):
            if word == "-m" and position + 1 < len(command):
                return command[position + 1].rpartition(".")[2]
            if word == "-c":
                return "python-c"
            if word.endswith(".py"):
                return Path(word).stem
    return Path(command[0]).name


# What a program that uses an NVIDIA GPU names, in its text or its arguments.
_GPU = re.compile(
    r"\b(?:cuda\w*|cupy|pycuda|triton|nvcc|cutlass|cute|numba\.cuda|tensorrt|deepspeed|vllm|gpus?)\b",
    re.IGNORECASE,
)
_LAUNCHERS = {"torchrun", "accelerate", "deepspeed"}
# What the linker leaves in a program that was made with CUDA.
_FATBIN = (b".nv_fatbin", b"libcudart.so", b"libcuda.so", b"cuLaunchKernel")
_LARGEST = 64 * 1024 * 1024  # bytes of a program that are looked at


def seems_gpu(workload: Workload) -> str | None:
    """Why the workload seems to use an NVIDIA GPU, in words; None where nothing says so. A guess: nothing is run.

    What its arguments say comes first: `--backend cpu` of a script that could use both is the CPU.
    """
    for word in workload.command[1:]:
        if re.fullmatch(r"(?:-\w|--[\w-]+=)?(?:cpu|mps)", word):
            return None
        if re.fullmatch(r"(?:--[\w-]+=)?(?:cuda(?::\d+)?|gpu|triton)", word):
            return f"its arguments say {word}"
    if Path(workload.command[0]).name in _LAUNCHERS:
        return f"{Path(workload.command[0]).name} starts it"
    for word in workload.command:
        path = Path(workload.folder, word)
        if word.endswith(".py") and path.is_file() and (match := _GPU.search(_text(path))) is not None:
            return f"{path.name} names {match[0]}"
    for before, word in zip(workload.command, workload.command[1:], strict=False):
        if before == "-c" and (match := _GPU.search(word)) is not None:
            return f"its program names {match[0]}"
    if workload.python is None and (program := shutil.which(workload.command[0])) is not None:
        return _linked(Path(program))
    return None


# What a program that uses an Apple GPU names. `torch` alone runs on the CPU.
_MPS = re.compile(r"\b(?:mps|mlx(?:_lm)?|coremltools|metal|MTLDevice|current_accelerator)\b|\bMetal\b")


def seems_mps(workload: Workload) -> str | None:
    """Why the workload seems to use the GPU of a Mac, in words; None where nothing says so. A guess: nothing is run."""
    for word in workload.command[1:]:
        if re.fullmatch(r"(?:-\w|--[\w-]+=)?(?:cpu|cuda(?::\d+)?)", word):
            return None
        if re.fullmatch(r"(?:--[\w-]+=)?(?:mps(?::0)?|gpu)", word):
            return f"its arguments say {word}"
    for word in workload.command:
        path = Path(workload.folder, word)
        if word.endswith(".py") and path.is_file() and (match := _MPS.search(_text(path))) is not None:
            return f"{path.name} names {match[0]}"
    for before, word in zip(workload.command, workload.command[1:], strict=False):
        if before == "-c" and (match := _MPS.search(word)) is not None:
            return f"its program names {match[0]}"
    return None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _linked(program: Path) -> str | None:
    """Whether an executable was made with CUDA, by what stands in it."""
    try:
        with program.open("rb") as file:
            content = file.read(_LARGEST)
    except OSError:
        return None
    found = next((mark for mark in _FATBIN if mark in content), None)
    is_program = content[:4] == b"\x7fELF"
    return f"{program.name} holds {found.decode()}" if found is not None and is_program else None


_IMPORT = re.compile(r"\b(?:import|from)\s+profkit\b")


def seems_marked(workload: Workload) -> bool:
    """Whether a script of the command names profkit: a guess for a plan that is only printed."""
    for word in workload.command:
        path = Path(workload.folder, word)
        if word.endswith(".py") and path.is_file():
            text = _text(path)
            if "profkit" in text or "harness" in text:
                return True
    # In `python -c`, and not in a path: a clone is called profkit, too.
    return any(_IMPORT.search(word) is not None for word in workload.command)
