"""Runs profkit on programs with a known problem and holds its first insight against an expert's answer.

    python -m tests.answers.trial [NAME...] [--runs 5] [--profkit "ARGUMENT..."] [--gpu]
        [--keep FOLDER] [--recorded FOLDER] [--rules]

Prints a table: is the place right, is the pattern right, is anything forbidden or absurd said, how long did it take
(s), and how long does the program take alone (T). The answers stand in `answers.yaml` and were written before profkit
was run on the programs. `--gpu` takes those of `gpu/`; `--keep` keeps what each run recorded, and `--recorded` judges
that again, on any machine. `--rules` adds a table of the rules. Of several
runs each, it also says whether the first insight is the same in all.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import lzma
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from profkit.core.types import RunDocument

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
COMPILERS = {".c": "gcc", ".cpp": "g++", ".rs": "rustc", ".cu": "nvcc"}
ALLOWED = (5.0, 20.0)  # a run on a GPU: times the program's own, and seconds
KEPT = (
    "run.json",
    "artifacts/trace.sqlite",
    "artifacts/operations.sqlite",
    "artifacts/stacks.jsonl.operations",
)
RAW = (  # of a document, from which the rest is made again
    "state", "name", "backend", "workload", "gpus", "sampled", "profiles", "counters", "readings", "instructions",
    "facts", "time_split",
)  # fmt: skip


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
    absurd: str = ""
    first: float | None = None  # seconds until the first answer was printed
    changed: str = ""  # what became of the first answer that stood on the screen
    said: tuple[str, ...] = ()  # the rules of all insights on the program, each once
    right: tuple[str, ...] = ()  # those that the answer accepts
    false: tuple[str, ...] = ()  # those that it forbids

    @property
    def word(self) -> str:
        """right, place (the pattern is not seen), wrong or absent."""
        if not self.rule:
            return "right" if self.pattern else "absent"
        if self.forbidden or self.absurd or not self.place:
            return "wrong"
        return "right" if self.pattern else "place"


@dataclass(frozen=True)
class TruthSet:
    """Programs and what an expert says of them; `everywhere`: words that are absurd in any insight."""

    programs: Path
    answers: dict[str, dict[str, Any]]
    everywhere: tuple[str, ...] = ()

    def source_of(self, name: str) -> Path:
        """The file of a program."""
        return next(self.programs.glob(f"{name}.*"))


@lru_cache
def truth_set(gpu: bool = False) -> TruthSet:
    """The programs of CPUs, or those of GPUs."""
    folder = HERE / "gpu" if gpu else HERE
    loaded: dict[str, Any] = yaml.safe_load((folder / "answers.yaml").read_text())
    known = loaded["programs"] if gpu else loaded
    return TruthSet(folder / "programs", known, tuple(loaded["everywhere"]) if gpu else ())


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


def command_of(truths: TruthSet, name: str, folder: Path) -> list[str] | None:
    """The command that runs a program; None where what it needs is not here."""
    source, answer = truths.source_of(name), truths.answers[name]
    if "needs" in answer and importlib.util.find_spec(answer["needs"]) is None:
        return None
    if "command" in answer:
        words = [str(truths.programs / word) if word.endswith(".py") else word for word in answer["command"]]
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


def try_program(
    truths: TruthSet, name: str, arguments: list[str], keep: Path | None = None, *, alone: bool = False
) -> Outcome | None:
    """Profile one program; `alone`: run it once without profkit before, to know how long that takes."""
    with TemporaryDirectory() as folder:
        command = command_of(truths, name, Path(folder))
        if command is None:
            return None
        plain = _seconds(command, truths.programs) if alone else None
        output = Path(folder) / "run"
        own = [sys.executable, "-m", "profkit", "profile", "--output", str(output), "--format", "json"]
        argv = [*own, *arguments, "--", *command]
        begin = time.monotonic()
        first = None
        with (
            (Path(folder) / "stdout").open("w+") as printed,
            subprocess.Popen(
                argv, cwd=truths.programs, stdout=printed, stderr=subprocess.PIPE, text=True
            ) as process,
        ):
            said = []
            for line in process.stderr or ():
                said.append(line)
                if "first answer" in line and first is None:
                    first = time.monotonic() - begin
            code = process.wait()
            seconds = time.monotonic() - begin
            printed.seek(0)
            text = printed.read()
        if keep is not None:
            _keep(output, keep / name, "".join(said))
        try:
            document = json.loads(text)
        except ValueError:
            print("".join(said)[-2000:])
            return Outcome(name, False, False, "", "", f"exit {code}", seconds, plain or 0.0)
    outcome = judge(truths, name, document, seconds)
    return replace(outcome, plain=plain if plain is not None else outcome.plain, first=first)


def _seconds(command: list[str], folder: Path) -> float:
    begin = time.monotonic()
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return time.monotonic() - begin


def _keep(output: Path, folder: Path, said: str) -> None:
    """Keep what an answer can be made of again."""
    run = next(iter(sorted(output.rglob("run.json"))), None)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "said.txt").write_text(said)
    for name in KEPT if run is not None else ():
        if run is not None and (run.parent / name).is_file():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes((run.parent / name).read_bytes())


def judge_recorded(truths: TruthSet, name: str, folder: Path) -> Outcome:
    """Hold what profkit says today of a recorded run against the answer: its traces are read again."""
    from profkit.core.run_folder import run_to_json

    return judge(truths, name, run_to_json(recorded_document(truths, name, folder)), 0.0)


def recorded_document(truths: TruthSet, name: str, folder: Path) -> RunDocument:
    """A recorded run as it is judged today. Its files may be compressed."""
    from profkit.analysis.timeline.joined_recordings import with_compiled_lines, with_operations
    from profkit.backends import PassFindings
    from profkit.backends.cuda.program_source import with_definitions
    from profkit.backends.cuda.run import add_launchers
    from profkit.core.run_folder import SCHEMA, run_from_json
    from profkit.profilers.registry import recognise_format
    from profkit.profiling.summarize import judge_document, targets_for

    with TemporaryDirectory() as unpacked:
        _unpack(folder, Path(unpacked))
        recorded = json.loads((Path(unpacked) / "run.json").read_text())
        raw = {key: value for key, value in recorded.items() if key in (*RAW, "trace")}
        document = run_from_json({**raw, "schema": SCHEMA})
        found = add_launchers(PassFindings(), Path(unpacked))
        document = replace(document, profiles=(*document.profiles, *found.profiles))
        sqlite = Path(unpacked) / "artifacts" / "trace.sqlite"
        workload = replace(
            document.workload, folder=str(truths.programs), command=(str(truths.source_of(name)),)
        )
        trace = document.trace
        if sqlite.is_file():
            trace = with_operations(recognise_format(sqlite).read(sqlite).trace, found.launched)
            trace = with_compiled_lines(trace, found.kernel_lines)
        document = replace(document, trace=with_definitions(trace, workload))
    return judge_document(document, targets_for("cuda"))


def _unpack(folder: Path, target: Path) -> None:
    """What was recorded, as a run leaves it."""
    (target / "artifacts").mkdir()
    for path in folder.rglob("*"):
        if path.suffix == ".log" or path.is_dir():
            continue
        name = path.name.removesuffix(".xz")
        content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        (target / name if name == "run.json" else target / "artifacts" / name).write_bytes(content)


def judge(truths: TruthSet, name: str, document: dict[str, Any], seconds: float) -> Outcome:
    """Hold a run's insights against the answer."""
    from tests.spoken import spoken_notes

    source, answer = truths.source_of(name), truths.answers[name]
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
    texts = "\n".join(f"{one['title']}\n{one['evidence']}\n{one['change']}" for one in insights)
    absurd = [word for word in (*answer.get("absurd", ()), *truths.everywhere) if re.search(word, texts)]
    return Outcome(
        name,
        right_place or (first is None and "none" in accepted),
        rule in accepted or (first is None and "none" in accepted),
        ", ".join(one for one in said if one in answer["forbids"]),
        rule,
        f"{Path(place.get('file') or '?').name}:{place.get('line')} {place.get('function')}",
        seconds,
        split.get("wall") or 0.0,
        absurd=", ".join(absurd),
        changed=next(
            (note for note in spoken_notes(document) if note.startswith("updated by the later pass")), ""
        ),
        said=(rules := tuple(dict.fromkeys(one["rule"] for one in insights if one["source"] == "profkit"))),
        right=tuple(one for one in rules if one in accepted),
        false=tuple(one for one in rules if one in answer["forbids"]),
    )


def functions_of(source: Path, marked: set[int]) -> set[str]:
    """The names of the functions of a compiled program that hold marked lines."""
    found, name = set(), ""
    for number, line in enumerate(source.read_text().splitlines(), 1):
        if match := re.match(
            r"(?:__global__ |static |void |long |int |double |fn |struct \w+ |\*)*(\w+)\(", line
        ):
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
    parser.add_argument("--gpu", action="store_true", help="the programs of GPUs")
    parser.add_argument("--keep", type=Path, help="a folder for what each run recorded")
    parser.add_argument("--recorded", type=Path, help="judge what --keep kept, and run nothing")
    parser.add_argument("--runs", type=int, default=1, help="of each program")
    parser.add_argument("--rules", action="store_true", help="also a table of how often each rule was right")
    options = parser.parse_args()
    truths = truth_set(options.gpu)
    arguments = [*(("--backend", "cuda") if options.gpu else ()), *options.profkit.split()]
    outcomes = []
    for name in [name for name in options.names or truths.answers for _ in range(options.runs)]:
        if options.recorded is not None:
            folder = options.recorded / name
            outcome = judge_recorded(truths, name, folder) if any(folder.glob("run.json*")) else None
        else:
            outcome = try_program(truths, name, arguments, options.keep, alone=options.gpu)
        if outcome is None:
            print(f"{name:16} skipped: what it needs is not here")
            continue
        outcomes.append(outcome)
        print(_row(outcome, options.gpu), flush=True)
    firsts: dict[str, list[str]] = {}
    for one in [one for one in outcomes if one.rule]:
        firsts.setdefault(one.name, []).append(f"{one.rule} {one.where}")
    for name, found in firsts.items() if options.runs > 1 else ():
        most = max(found, key=found.count)
        print(f"{name:16} the same first insight in {found.count(most)} of {options.runs} runs")
    if options.rules:
        print("\n".join(rule_table(outcomes)))
    words = [outcome.word for outcome in outcomes]
    counts = ", ".join(f"{word} {words.count(word)}" for word in ("right", "place", "wrong", "absent"))
    absurd = sum(bool(one.absurd) for one in outcomes)
    print(
        f"{len(outcomes)} programs: {counts}; place right {sum(one.place for one in outcomes)}; absurd {absurd}"
    )


def rule_table(outcomes: list[Outcome]) -> list[str]:
    """How often each rule spoke, how often the expert names it there, and how often he says that it is wrong.

    What is left is neither: a second finding on a program whose answer is about another place.
    """
    rules = sorted({rule for one in outcomes for rule in one.said})
    rows = ["| rule | spoke | named | wrong |", "| --- | --- | --- | --- |"]
    for rule in rules:
        each = ((one.said, one.right, one.false) for one in outcomes)
        counts = [sum(rule in named for named in column) for column in zip(*each, strict=True)]
        rows.append(f"| `{rule}` | {' | '.join(map(str, counts))} |")
    return rows


def _row(outcome: Outcome, gpu: bool) -> str:
    shown = f"{outcome.rule:22} {outcome.where:40} {outcome.forbidden}"
    if outcome.absurd:
        shown += f" absurd: {outcome.absurd}"
    times = f"{outcome.seconds:6.1f} s {outcome.plain:5.2f} s"
    if gpu:
        first = f"{outcome.first:5.1f} s" if outcome.first is not None else "      -"
        late = outcome.seconds > ALLOWED[0] * outcome.plain + ALLOWED[1]
        times += f" {first} {'late' if late else '    '}"
    return f"{outcome.name:16} {outcome.word:7} {times}  {shown}"


if __name__ == "__main__":
    main()
