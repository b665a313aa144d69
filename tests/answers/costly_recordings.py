"""Recordings of the programs of `costly/`: what the sampler and the counter of calls wrote of each version.

    python -m tests.answers.costly_recordings [ROW...] [--seconds 1] [--python PYTHON]

Records the rows that have no recording, or one of another text, and those that are named, and keeps what holds. To
judge a row of its recording takes a tenth of a second, and to run all its versions four. A recording has no paths of
the machine it is from. `--python` records with another Python, which may have libraries that this one lacks.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import marshal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.answers.costly import (
    RowProgram,
    RowResult,
    line_of,
    missing_libraries,
    result_of,
    row_programs,
    rows_told,
    try_row,
)

RECORDINGS = Path(__file__).parent.parent / "data" / "costly"
CALLS, JSON_FILES = "calls.prof", ("stacks.jsonl", "calls.json")
# What stands for the folder of the program and for those of its Python, and what the latter are in the tests.
PLACES = {"{prefix}": "/opt/environment", "{base}": "/usr/local"}
DIGITS = 6  # of the seconds of a function, after the point
# Functions that with all they call take a smaller share of the counted run are left out: most are of imports.
SMALLEST = 0.001


def text_digest(program: RowProgram) -> str:
    """Return the digest of all that is run for a row: a recording of another text proves nothing."""
    texts = [program.code(version) for version in program.versions.values()]
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def file_of(name: str) -> Path:
    """Return the file of a row's recording, by the name of its program."""
    return RECORDINGS / f"{name}.json.xz"


def load_recording(name: str) -> dict[str, Any] | None:
    """Return the recording of a row; None where there is none of its text as it is now."""
    try:
        recording: dict[str, Any] = json.loads(lzma.decompress(file_of(name).read_bytes()))
    except FileNotFoundError:
        return None
    return recording if recording["text"] == text_digest(row_programs()[name]) else None


def judge_recording(program: RowProgram, recording: dict[str, Any], folder: Path) -> RowResult:
    """Read and judge all versions of a row as `try_row` does, of its recording."""
    told = {}
    for version, files in recording["versions"].items():
        place = folder / version
        place.mkdir()
        (place / "work.py").write_text(program.code(program.versions[version]))
        write_files(files, place)
        told[version] = rows_told(place)
    return result_of(program, told, equal=recording["equal"], gain=recording["gain"])


def read_files(folder: Path, places: dict[str, str]) -> dict[str, Any]:
    """Return what was recorded in a folder; `places`: the token of each folder."""

    def without_places(text: str) -> str:
        for place, token in places.items():
            text = text.replace(place, token)
        return text

    files: dict[str, Any] = {
        name: without_places((folder / name).read_text()) for name in JSON_FILES if (folder / name).exists()
    }
    functions = large_functions(marshal.loads((folder / CALLS).read_bytes()))
    numbers = {function: number for number, function in enumerate(functions)}

    def rounded(values: tuple[Any, ...]) -> list[Any]:
        return [round(value, DIGITS) if isinstance(value, float) else value for value in values]

    files[CALLS] = [
        [
            [without_places(file), line, name],
            rounded(values[:-1]),
            [[numbers[caller], rounded(calls)] for caller, calls in values[-1].items() if caller in numbers],
        ]
        for (file, line, name), values in functions.items()
    ]
    return files


def large_functions(functions: dict[Any, Any]) -> dict[Any, Any]:
    """Return the functions of a pstats table that take a share of the run that matters."""
    total = sum(own for _, _, own, _, _ in functions.values())
    return {name: values for name, values in functions.items() if values[3] >= SMALLEST * total}


def write_files(files: dict[str, Any], folder: Path) -> None:
    """Write the files of a recording as they were, with a folder of now."""

    def with_places(text: str) -> str:
        for token, place in {"{folder}": str(folder), **PLACES}.items():
            text = text.replace(token, place)
        return text

    for name in files.keys() - {CALLS}:
        (folder / name).write_text(with_places(files[name]))
    functions = [(with_places(file), line, name) for (file, line, name), _, _ in files[CALLS]]
    table = {
        function: (*values, {functions[caller]: tuple(calls) for caller, calls in callers})
        for function, (_, values, callers) in zip(functions, files[CALLS], strict=True)
    }
    (folder / CALLS).write_bytes(marshal.dumps(table))


def places_of(python: str) -> dict[str, str]:
    """Return the tokens of the folders of a Python, the longest first."""
    code = "import json, sys; print(json.dumps([sys.prefix, sys.base_prefix]))"
    prefix, base = json.loads(subprocess.run([python, "-c", code], capture_output=True, check=True).stdout)
    places = {base: "{base}", prefix: "{prefix}"}
    return dict(sorted(places.items(), key=lambda pair: -len(pair[0])))


def record_row(name: str, *, seconds: float = 0.0, python: str = sys.executable) -> RowResult:
    """Run all versions of a row and keep the recording; nothing is kept where the row does not hold."""
    program = row_programs()[name]
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        result = try_row(program, folder, seconds=seconds, python=python)
        versions = {
            version: read_files(folder / version, {str(folder / version): "{folder}"} | places_of(python))
            for version in program.versions
        }
        recording = {
            "text": text_digest(program),
            "equal": result.equal,
            "gain": float(f"{result.gain:.3g}"),
            "versions": versions,
        }
        (folder / "again").mkdir()
        again = judge_recording(program, json.loads(json.dumps(recording)), folder / "again")
    if result.holds and again.holds:
        RECORDINGS.mkdir(exist_ok=True)
        text = json.dumps(recording, separators=(",", ":"), ensure_ascii=False)
        file_of(name).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    elif result.holds:
        print(f"{name}: holds where it was run, and not of its recording: {asdict(again)}")
    return result


def main() -> None:
    """Record the rows that are named, or those that have no recording."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--seconds", type=float, default=0.0, help="of each run")
    parser.add_argument("--python", default=sys.executable, help="the Python that runs the programs")
    options = parser.parse_args()
    # those of many libraries take longest
    for name in options.rows or sorted(row_programs(), key=lambda name: len(row_programs()[name].needs)):
        if not options.rows and load_recording(name) is not None:
            continue
        if missing_libraries(row_programs()[name], options.python):
            continue
        try:
            print(line_of(record_row(name, seconds=options.seconds, python=options.python)), flush=True)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            print(f"{name}: {error}", flush=True)


if __name__ == "__main__":
    main()
