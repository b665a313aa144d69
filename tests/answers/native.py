"""Programs of C++ and Rust for the rows of costly_native.yaml, each in two forms: as it was written, and mended.

    python -m tests.answers.native [--plain] [NAME ...]

compiles both, samples both with perf, and prints whether the row is found at the first, whether the second is free of
it, whether both print the same, and how many times faster the second is. The programs are in tests/answers/native/;
With --plain they are compiled without
debug information. `FIXED` (C++) or `--cfg fixed` (Rust) is the second form, and their argument is their size.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.analysis.hot_spots import hot_spots
from profkit.analysis.judge.findings import find_insights
from profkit.analysis.judge.rules.native.functions import native_functions, unlined_functions
from profkit.backends.source_lines import source_places, with_text
from profkit.core.types import Insight
from profkit.profilers.perf.command import record_argv, script_argv
from profkit.profilers.perf.source_lines import native_lines
from tests import documents

PROGRAMS = Path(__file__).with_name("native")
COMPILERS = {".cpp": "g++", ".rs": "rustc"}
# Programs that are no row of the table, or another program of a row.
TITLES = {
    "tree": "Keys are looked up in a tree, and compared at each step down",
    "sort-keys": "The sort makes the keys again for each comparison, instead of once for each element",
    "container-cloned": "All that a container holds is copied here",
    "searched-if": "A vector is searched from its start for each item",
} | {row.id: row.title for row in native_functions()}

UNLINED = {row.id: row.title for row in unlined_functions()}  # of programs without debug information


@dataclass(frozen=True)
class Tried:
    """One form of a program: what it printed, its processor seconds, and what was found."""

    printed: str
    seconds: float
    insights: tuple[Insight, ...]

    def says(self, title: str) -> bool:
        """Return whether a finding has this title."""
        return any(one.title == title for one in self.insights)


def sources() -> list[Path]:
    """Return the programs whose compiler is here."""
    return sorted(one for one in PROGRAMS.iterdir() if shutil.which(COMPILERS[one.suffix]))


def compiled(source: Path, folder: Path, *, fixed: bool, debug: bool = True) -> Path:
    """Compile one form of a program, as it is delivered: optimised, with debug information or without."""
    program = folder / (source.stem + ("-fixed" if fixed else "") + ("" if debug else "-plain"))
    information = ["-g"] if debug else []
    if source.suffix == ".cpp":
        form = ["-DFIXED"] if fixed else []
        argv = ["g++", "-O2", *information, "-std=c++17", "-pthread", *form, "-o", program, source]
    else:
        argv = [
            "rustc",
            "-A",
            "warnings",
            "-O",
            *information,
            *(["--cfg", "fixed"] if fixed else []),
            "-o",
            program,
            source,
        ]
    subprocess.run(argv, check=True, capture_output=True)
    return program


def tried(program: Path, size: float) -> Tried:
    """Run the program below perf, and judge its samples."""
    recording, text = program.with_suffix(".data"), program.with_suffix(".txt")
    argv = record_argv(
        (str(program), str(size)), recording, event="cpu-clock", call_graph="dwarf", frequency=499
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(script_argv(recording, text, offsets=True), check=True, capture_output=True)
    recording.unlink()
    sampled = with_text(native_lines(text, program, source_places))
    document = replace(documents.empty(), sampled=(sampled,) if sampled is not None else ())
    insights = tuple(find_insights(replace(document, hot_spots=hot_spots(document))))
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Tried(done.stdout, sampled.cpu if sampled is not None else seconds, insights)


def main(names: list[str]) -> None:
    """Print a line for each program."""
    debug = "--plain" not in names
    names = [name for name in names if name != "--plain"]
    with tempfile.TemporaryDirectory() as folder:
        for source in sources():
            if names and source.stem not in names:
                continue
            first, second = (
                tried(compiled(source, Path(folder), fixed=fixed, debug=debug), 1.0)
                for fixed in (False, True)
            )
            title = TITLES[source.stem] if debug else UNLINED.get(source.stem, TITLES[source.stem])
            others = [one.title for one in first.insights if one.title != title]
            print(
                f"{source.stem:24} found {first.says(title)!s:5}  fixed is free of it {not second.says(title)!s:5}  "
                f"same output {first.printed == second.printed!s:5}  {first.seconds:5.2f} -> {second.seconds:5.2f} s  "
                f"{first.seconds / max(second.seconds, 1e-3):6.1f} times  {'; '.join(others)}"
            )
            for one in second.insights:
                print(f"{'':24} fixed: {one.title}")


if __name__ == "__main__":
    main(sys.argv[1:])
