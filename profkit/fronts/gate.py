"""From nothing to a gate: which benchmarks a repository has, and the workflow that compares them in each request."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Literal

from profkit.core.errors import UsageError, writing
from profkit.core.files.regular import read_bounded
from profkit.core.files.safe_folder import make_parents, write_whole
from profkit.regression.nightly.config import read_config
from profkit.regression.paired.checkout import git_line, no_repository, repository_of

Forge = Literal["github", "gitlab"]
RECIPES = Path(__file__).with_name("recipes")
SUITE = "profkit.yaml"
MAX_WORKLOADS = 12  # workloads: at two minutes each they fit the job's hour with their set-up
_FIXTURE = re.compile(r"^\s*(?:async )?def \w+\([^)]*\bbenchmark\b", re.MULTILINE)
_TIMED = re.compile(r"^\s*def time_\w+\(", re.MULTILINE)
_FOLDERS = {"bench", "benches", "benchmark", "benchmarks", "perf"}
_GOOGLE = re.compile(r"target_link_libraries\(\s*([\w.-]+)[^)]*\bbenchmark(?:_main)?\b", re.IGNORECASE)
_CMAKE = "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build -j2"
# As many calls in both versions: by default it makes as many as fill half a second.
_CALLS = "--benchmark_min_time=1000x"
_PYTEST = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "profkit.fronts.suites")
_SIZE = 1 << 20  # bytes of a file that are looked at


@dataclass(frozen=True)
class FoundBenchmark:
    """A workload of the suite; `kind`: what it was found as."""

    name: str
    command: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class GatePlan:
    """What would be written: texts by path inside of the repository, and what a person has to know of it."""

    root: Path
    forge: Forge
    suite: str
    benchmarks: tuple[FoundBenchmark, ...]
    files: dict[str, str]
    notes: tuple[str, ...]
    source: str | None  # what pip installs there; None: not known


def plan_gate(folder: Path, forge: Forge | None, command: Sequence[str], source: str | None) -> GatePlan:
    """Look at the repository around `folder`; `command` is the only workload where one is given.

    Raises UsageError where there is no repository, or no benchmark in it.
    """
    root = repository_of(folder)
    if root is None:
        raise no_repository(folder)
    names, notes = (git_line(root, "ls-files", "-z") or "").split("\0"), []
    suite = next((name for name in (SUITE, "nightly.yaml") if (root / name).is_file() and not command), None)
    files: dict[str, str] = {}
    if suite is not None:
        found = [FoundBenchmark(w.name, w.command, suite) for w in read_config(root / suite).workloads]
    else:
        suite, all_found = SUITE, _given(command) if command else _find(root, names)
        found = all_found[:MAX_WORKLOADS]
        if len(all_found) > MAX_WORKLOADS:
            notes.append(
                f"{len(all_found) - MAX_WORKLOADS} more do not fit an hour; {SUITE} is where they would stand"
            )
        files[suite] = _suite_text(found)
    source = source or own_source()
    if source is None:
        notes.append("no runner has this profkit, which was installed from a folder here: use --install")
    if forge is None:
        url = git_line(root, "remote", "get-url", "origin") or ""
        forge = "gitlab" if (root / ".gitlab-ci.yml").exists() or "gitlab" in url else "github"
    values = {"SUITE": suite, "PROFKIT": source or "", "SETUP": _set_up(root, names, found)}
    if forge == "github":
        files[".github/actions/profkit/action.yml"] = _recipe("action.yml", values)
        files[".github/workflows/profkit.yml"] = _recipe("github.yml", values)
        files[".github/workflows/profkit-comment.yml"] = _recipe("github-comment.yml", values)
        notes.append("comments begin once profkit-comment.yml is on the default branch")
    else:
        files[".gitlab/profkit.yml"] = _recipe("gitlab.yml", values)
        if not (root / ".gitlab-ci.yml").exists():
            files[".gitlab-ci.yml"] = "include:\n  - local: .gitlab/profkit.yml\n"
        elif ".gitlab/profkit.yml" not in _read(root / ".gitlab-ci.yml"):
            notes.append("add to .gitlab-ci.yml below `include:`  - local: .gitlab/profkit.yml")
    return GatePlan(root, forge, suite, tuple(found), files, tuple(notes), source)


def write_gate(plan: GatePlan, *, force: bool) -> None:
    """Write its files. Raises UsageError where one is there with other content, or profkit's source is not known."""
    if plan.source is None:
        raise UsageError(
            "this profkit was installed from a folder of this machine, which no runner has",
            "profkit gate --init --install 'profkit @ git+https://HOST/OWNER/profkit'",
        )
    for name, text in plan.files.items():
        _refuse_links(plan.root, name)
        if (plan.root / name).exists() and _read(plan.root / name) != text and not force:
            raise UsageError(f"{name} is there already, with other content", "profkit gate --init --force")
    for name, text in plan.files.items():
        path = plan.root / name
        with writing(path, f"ls -ld {shlex.quote(str(path.parent))}"):
            make_parents(path.parent)
            write_whole(path, (text,))


def _refuse_links(root: Path, name: str) -> None:
    """Raise UsageError where a link stands on the way to a file: what it leads to may be another's."""
    for step in (*reversed(PurePath(name).parents[:-1]), PurePath(name)):
        if (root / step).is_symlink():
            leads = f"{step} is a link to {os.readlink(root / step)}, and a gate is written through none"
            raise UsageError(
                leads, f"cd {shlex.quote(str(root))} && rm {shlex.quote(str(step))}   (the link alone)"
            )


# ---------------------------------------------------------------- which benchmarks there are


def _given(command: Sequence[str]) -> list[FoundBenchmark]:
    words = [word for word in command if not word.startswith("-")] or ["workload"]
    return [FoundBenchmark(Path(words[min(1, len(words) - 1)]).stem, tuple(command), "given")]


def _find(root: Path, names: Sequence[str]) -> list[FoundBenchmark]:
    unique: dict[str, FoundBenchmark] = {}
    for each in (*_of_python(root, names), *_of_google(root, names)):
        name = each.name if each.name not in unique else f"{each.name}-{len(unique)}"
        unique[name] = replace(each, name=name)
    if not unique:
        raise UsageError(
            "no benchmark was found: no test with pytest-benchmark's fixture, no asv.conf.json, no bench/*.py, "
            "no Google Benchmark in a CMakeLists.txt that git tracks",
            "profkit gate --init -- python bench.py",
        )
    return list(unique.values())


def _of_python(root: Path, names: Sequence[str]) -> Iterator[FoundBenchmark]:
    asv = any(Path(name).name == "asv.conf.json" for name in names)
    for name in names:
        path, text = Path(name), _read(root / name) if name.endswith(".py") else ""
        inside = bool(_FOLDERS & set(path.parts[:-1]))
        if not text or path.name.startswith(("_", "conftest")):
            continue
        if _FIXTURE.search(text):
            yield FoundBenchmark(path.stem, (*_PYTEST, "--benchmark-only", name), "pytest-benchmark")
        elif asv and inside and _TIMED.search(text):
            yield FoundBenchmark(path.stem, ("python", "-m", "profkit.fronts.suites", name), "asv")
        elif asv and "__main__" not in text:
            continue  # what its benchmarks import
        elif len(path.parts) <= 2 and not path.name.startswith("test") and (inside or "bench" in path.name):
            yield FoundBenchmark(path.stem, ("python", name), "script")


def _of_google(root: Path, names: Sequence[str]) -> Iterator[FoundBenchmark]:
    for path in (Path(name) for name in names if name.endswith("CMakeLists.txt")):
        for target in dict.fromkeys(_GOOGLE.findall(_read(root / path))):
            yield FoundBenchmark(
                target, (str(Path("build", path.parent, target)), _CALLS), "Google Benchmark"
            )


# ---------------------------------------------------------------- what is written


def _suite_text(found: Sequence[FoundBenchmark]) -> str:
    lines = [
        "# What is compared in each request; every key: profkit nightly --example. Try it here:",
        f"#   profkit compare --suite {SUITE} --base HEAD~1",
        "version: 1",
        "defaults:",
        "  floors: {time.median: 5 %}    # a smaller change does not count",
        "  timing: 0.2    # seconds of each benchmark in one process: a suite of thirty has its pairs in two minutes",
    ]
    if any(_CALLS in each.command for each in found):
        lines += ["pairs:    # builds the checkout of the baseline", f"  setup: [sh, -c, {_quoted(_CMAKE)}]"]
    lines.append("workloads:")
    for each in found:
        words = ", ".join(map(_quoted, each.command))
        lines += [f"  - name: {_quoted(each.name)}", f"    command: [{words}]"]
    return "\n".join(lines) + "\n"


def _quoted(word: str) -> str:
    """Return the word as YAML: unchanged if it can only be a text, which `null`, `yes` and `on` are not."""
    import yaml

    if re.fullmatch(r"[A-Za-z][\w./=]*", word) is not None and yaml.safe_load(word) == word:
        return word
    return yaml.safe_dump(word, default_style='"', allow_unicode=True, width=math.inf).rstrip("\n")


def _set_up(root: Path, names: Sequence[str], found: Sequence[FoundBenchmark]) -> str:
    """Return the shell commands that prepare the project; the baseline takes its modules from its own checkout."""
    what = ["-r requirements.txt"] if "requirements.txt" in names else []
    project = any(word in _read(root / "pyproject.toml") for word in ("[project]", "[build-system]"))
    what += ["."] if project or "setup.py" in names else []
    what += (
        ["pytest pytest-benchmark"] if any(each.command[: len(_PYTEST)] == _PYTEST for each in found) else []
    )
    built = any(_CALLS in each.command for each in found)
    what += ["cmake"] if built else []
    lines = [f"python -m pip install --quiet {each}" for each in what] + [_CMAKE] * built
    return "\n".join(lines or ["echo 'nothing to set up: put here what builds your project'"])


def _recipe(name: str, values: dict[str, str]) -> str:
    def filled(at: re.Match[str]) -> str:
        return at[1] + values[at[2]].replace("\n", "\n" + at[1])  # all lines stand where the first does

    text = (RECIPES / name).read_text(encoding="utf-8")
    return re.sub(r"((?:(?<=\n) *)?)@(SUITE|PROFKIT|SETUP)@", filled, text)


def own_source() -> str | None:
    """Return what pip installs to have this profkit elsewhere; None where that was a file or a folder here."""
    try:
        own = importlib.metadata.distribution("profkit")
    except importlib.metadata.PackageNotFoundError:  # it runs from its folder
        return None
    origin = json.loads(own.read_text("direct_url.json") or "{}")
    if not origin:
        return f"profkit=={own.version}"
    if "vcs_info" in origin:
        return f"profkit @ git+{origin['url']}@{origin['vcs_info']['commit_id']}"
    return None


def _read(path: Path) -> str:
    try:
        return read_bounded(path, _SIZE).decode()
    except (OSError, UnicodeDecodeError, UsageError):
        return ""
