"""Runs profkit on programs with a known problem and holds its first insight against an expert's answer.

    python -m tests.answers.trial [NAME...] [--runs 5] [--profkit "ARGUMENT..."]

Prints a table: is the place right, is the pattern right, is anything forbidden said. The answers stand in
`answers.yaml` and were written before profkit was run on the programs. Of several runs each, it also says whether the
first insight is the same in all.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
COMPILERS = {".c": "gcc", ".cpp": "g++", ".rs": "rustc"}
NEAR = 0  # lines between the expert's and profkit's


@dataclass(frozen=True)
class Outcome:
    """How one program went."""

    name: str
    place: bool
    pattern: bool
    forbidden: str
    rule: str
    where: str
    seconds: float
    plain: float
    changed: str = ""  # what became of the first answer that stood on the screen

    @property
    def word(self) -> str:
        """right, place (the pattern is not seen), wrong or absent."""
        if not self.rule:
            return "absent"
        if self.forbidden or not self.place:
            return "wrong"
        return "right" if self.pattern else "place"


def answers() -> dict[str, dict[str, Any]]:
    """What the expert says, by program."""
    loaded: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "answers.yaml").read_text())
    return loaded


def source_of(name: str) -> Path:
    """The file of a program."""
    return next(PROGRAMS.glob(f"{name}.*"))


def marked_lines(source: Path) -> set[int]:
    """The lines that the expert names; of Python also the head of the loop and the function that they are in."""
    lines = source.read_text().splitlines()
    marked = {
        number for number, line in enumerate(lines, 1) if re.search(r"(#|//|/\*) (answer|also)\b", line)
    }
    if source.suffix != ".py":
        return marked
    heads = set()
    for line in marked:
        around = [
            node.lineno
            for node in ast.walk(ast.parse(source.read_text()))
            if isinstance(node, (ast.FunctionDef, ast.For, ast.While, ast.Try))
            and node.lineno <= line <= (node.end_lineno or 0)
        ]
        heads.update(sorted(around)[-2:])
    return marked | heads


def command_of(name: str, answer: dict[str, Any], folder: Path) -> list[str] | None:
    """The command that runs a program; None where what it needs is not here."""
    source = source_of(name)
    if "needs" in answer and importlib.util.find_spec(answer["needs"]) is None:
        return None
    if "command" in answer:
        words = [str(PROGRAMS / word) if word.endswith(".py") else word for word in answer["command"]]
        return words if shutil.which(words[0]) else None
    if source.suffix == ".py":
        return [sys.executable, source.name]
    if shutil.which(COMPILERS[source.suffix]) is None:
        return None
    program = folder / name
    subprocess.run(
        [COMPILERS[source.suffix], *answer["build"].split(), "-o", str(program), str(source)], check=True
    )
    return [str(program)]


def try_program(name: str, answer: dict[str, Any], arguments: list[str]) -> Outcome | None:
    """Profile one program."""
    with TemporaryDirectory() as folder:
        command = command_of(name, answer, Path(folder))
        if command is None:
            return None
        argv = [
            sys.executable,
            "-m",
            "profkit",
            "profile",
            "--output",
            folder,
            "--format",
            "json",
            *arguments,
        ]
        begin = time.monotonic()
        done = subprocess.run([*argv, "--", *command], cwd=PROGRAMS, capture_output=True, text=True)
        seconds = time.monotonic() - begin
        try:
            document = json.loads(done.stdout)
        except ValueError:
            print(done.stderr[-2000:])
            return Outcome(name, False, False, "", "", f"exit {done.returncode}", seconds, 0.0)
    return judge(name, answer, document, seconds)


def judge(name: str, answer: dict[str, Any], document: dict[str, Any], seconds: float) -> Outcome:
    """Hold a run's insights against the answer."""
    source = source_of(name)
    insights = document["insights"]
    first = insights[0] if insights else None
    spots = [spot for spot in document["hot_spots"] if spot["kind"] != "rest"]
    place = (first or {}).get("where") or (spots[0]["where"] if spots else {})
    same_file = Path(place.get("file") or "").name == source.name
    marked = marked_lines(source)
    native = source.suffix != ".py" and place.get("function") in functions_of(source, marked)
    right_place = (same_file and place.get("line") in marked) or native
    rule = first["rule"] if first else ""
    accepted = {"hot-spot" if one == "spot" else one for one in answer["accepts"]}
    said = [one["rule"] for one in insights[:3]]
    split = document.get("time_split") or {}
    return Outcome(
        name,
        right_place,
        rule in accepted,
        ", ".join(one for one in said if one in answer["forbids"]),
        rule,
        f"{Path(place.get('file') or '?').name}:{place.get('line')} {place.get('function')}",
        seconds,
        split.get("wall") or 0.0,
        next((note for note in document["notes"] if note.startswith("now: ")), ""),
    )


def functions_of(source: Path, marked: set[int]) -> set[str]:
    """The names of the functions of a compiled program that hold marked lines."""
    found, name = set(), ""
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if match := re.match(r"(?:static |void |long |int |double |fn |struct \w+ |\*)*(\w+)\(", line):
            name = match[1]
        if number in marked:
            found.add(name)
    return found


def main() -> None:
    """Run the programs that are named, or all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--profkit", default="", help="more arguments of profkit profile")
    parser.add_argument("--runs", type=int, default=1, help="of each program")
    options = parser.parse_args()
    known = answers()
    outcomes = []
    for name in [name for name in options.names or known for _ in range(options.runs)]:
        outcome = try_program(name, known[name], options.profkit.split())
        if outcome is None:
            print(f"{name:16} skipped: what it needs is not here")
            continue
        outcomes.append(outcome)
        shown = f"{outcome.rule:22} {outcome.where:40} {outcome.forbidden}"
        print(
            f"{outcome.name:16} {outcome.word:7} {outcome.seconds:6.1f} s {outcome.plain:5.2f} s  {shown}",
            flush=True,
        )
    firsts: dict[str, list[str]] = {}
    for one in [one for one in outcomes if one.rule]:
        firsts.setdefault(one.name, []).append(f"{one.rule} {one.where}")
    for name, found in firsts.items() if options.runs > 1 else ():
        most = max(found, key=found.count)
        print(f"{name:16} the same first insight in {found.count(most)} of {options.runs} runs")
    words = [outcome.word for outcome in outcomes]
    counts = ", ".join(f"{word} {words.count(word)}" for word in ("right", "place", "wrong", "absent"))
    print(f"{len(outcomes)} programs: {counts}; place right {sum(one.place for one in outcomes)}")


if __name__ == "__main__":
    main()
