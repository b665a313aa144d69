"""A folder of kernels on disk: which folders are of operations, and which file of several is the kernel. No torch."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profkit.core.codec import is_finite_number
from profkit.core.files.regular import read_bounded
from profkit.kernels.evaluation.sources.source import LoadError
from profkit.kernels.evaluation.sources.text import read_text


@dataclass(frozen=True)
class ChosenFile:
    """The file of a folder that is the kernel, and why where there were several."""

    file: Path
    reason: str = ""


def kernel_folders(root: Path) -> Iterator[Path]:
    """The folders in it that may be of an operation, by name."""
    for entry in sorted(root.iterdir()):
        if entry.is_dir() and not entry.name.startswith((".", "__pycache__")):
            yield entry


def kernel_files(folder: Path) -> list[Path]:
    """The files that are named after the folder, the one that is taken without a summary last.

    `relu.py`, `relu_attempt_3.py`, `relu_implementation_v1.py`: a number comes after none, the highest last. Where no
    file is named so: those that define a function which is.
    """
    start = re.escape(folder.name)
    named = re.compile(rf"{start}(_attempt_?\w*|_implementation\w*)?\.py")
    files = [file for file in folder.glob("*.py") if file.is_file()]
    fitting = [file for file in files if named.fullmatch(file.name)]
    return sorted(fitting or [file for file in files if _defines_kernel(file, folder.name)], key=_order)


def _order(file: Path) -> tuple[int, str]:
    number = re.search(r"(\d+)$", file.stem.removeprefix(file.parent.name))
    return (int(number[1]) if number else -1, file.name)


def _defines_kernel(file: Path, folder: str) -> bool:
    try:
        return read_text(file).kernel_of(folder) is not None
    except LoadError:
        return False


def choose_file(folder: Path) -> ChosenFile:
    """The kernel of a folder: what its summary says is correct, else the highest number.

    Raises LoadError where there is none.
    """
    files = kernel_files(folder)
    if not files:
        raise LoadError(
            f"{folder} has no kernel: no {folder.name}.py, {folder.name}_implementation_v1.py, and none like them"
        )
    chosen, unsuccessful = _summarized(folder, files)
    if chosen is not None:
        return chosen
    reason = f"the highest number of {len(files)} files" if len(files) > 1 else ""
    return ChosenFile(files[-1], ", and ".join(filter(None, (reason, unsuccessful))))


def _summarized(folder: Path, files: list[Path]) -> tuple[ChosenFile | None, str]:
    """What the record of a generation says: the kernel that it keeps, else its fastest correct one.

    With None stands that the record knows no correct one, where it knows that.
    """
    summary = folder / f"{folder.name}_kernel_gen_summary.json"
    by_name = {file.name: file for file in files}
    try:
        rows: Any = json.loads(read_bounded(summary))
    except (OSError, ValueError, RecursionError):
        return None, ""
    correct = [
        (row.get("kept") is True, _speedup(row), place, by_name[name])
        for place, row in enumerate(rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and row.get("is_correct") is True
        if (name := Path(str(row.get("kernel_file"))).name) in by_name
    ]
    if not correct:
        return None, f"{summary.name} says that none is correct" if rows else ""
    kept, _, _, file = max(correct)
    several = (" and kept" if kept else " and the fastest") if len(correct) > 1 else ""
    return ChosenFile(file, f"{summary.name} says that it is correct{several}" if len(files) > 1 else ""), ""


def _speedup(row: dict[str, Any]) -> float:
    value = row.get("overall_speedup")
    return float(value) if is_finite_number(value) else 0.0
