"""From nothing to a gate: which benchmarks a repository has, and the workflow that compares them in each request."""

from __future__ import annotations

import importlib.metadata
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from profkit.core.errors import UsageError, writing
from profkit.core.files.regular import read_bounded_text
from profkit.core.files.safe_folder import make_parents, write_whole
from profkit.regression.nightly.config import read_config
from profkit.regression.paired.checkout import git_line, no_repository, repository_of

Forge = Literal["github", "gitlab"]
RECIPES = Path(__file__).with_name("recipes")
SUITE = "profkit.yaml"
_SUITES = (SUITE, "nightly.yaml")  # one that is there already is used
MOST = 12  # workloads: at two minutes each they fit the job's hour with their set-up
_FIXTURE = re.compile(r"^\s*(?:async )?def test_?\w*\([^)]*\bbenchmark\b", re.MULTILINE)
_TIMED = re.compile(r"^\s*def time_\w+\(", re.MULTILINE)
_FOLDERS = {"bench", "benches", "benchmark", "benchmarks", "perf"}
_GOOGLE = re.compile(r"target_link_libraries\(\s*([\w.-]+)[^)]*\bbenchmark(?:_main)?\b", re.IGNORECASE)
_CMAKE = "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build -j2"
_SIZE = 1 << 20  # bytes of a file that are looked at
_YAML_PLAIN = re.compile(r"[\w./=-]+")


@dataclass(frozen=True)
class FoundBenchmark:
    """A workload of the suite. `kind`: what it was found as; `needs`: what pip installs for it beside the project."""

    name: str
    command: tuple[str, ...]
    kind: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class GatePlan:
    """What would be written: texts by path inside of the repository, and what a person has to know of it."""

    root: Path
    forge: Forge
    suite: str
    benchmarks: tuple[FoundBenchmark, ...]  # empty where the suite was there already
    files: dict[str, str]
    notes: tuple[str, ...]
    source: str | None  # what pip installs there; None: not known


def plan_gate(folder: Path, forge: Forge | None, command: Sequence[str], install: str | None) -> GatePlan:
    """Look at the repository around `folder`; `command` is the only workload where one is given.

    Raises UsageError where there is no repository, or no benchmark in it.
    """
    root = repository_of(folder)
    if root is None:
        raise no_repository(folder, "git init; git add -A; git commit")
    names = (git_line(root, "ls-files", "-z") or "").split("\0")
    notes = []
    forge = forge or ("gitlab" if _is_gitlab(root) else "github")
    suite = next((name for name in _SUITES if (root / name).is_file()), None)
    found: list[FoundBenchmark] = []
    files: dict[str, str] = {}
    if suite is None or command:
        suite = SUITE
        found = [FoundBenchmark(_name(command), tuple(command), "given")] if command else _find(root, names)
        if len(found) > MOST:
            notes.append(
                f"{len(found) - MOST} more were found than an hour has room for: add them to {SUITE}"
            )
            found = found[:MOST]
        files[suite] = _suite_text(found)
    setup = _set_up(root, names, found, "" if forge == "gitlab" else "sudo ")
    source = install or _own_source()
    if source is None:
        notes.append(
            "no runner has this profkit, which was installed from a folder here: --install says what it takes"
        )
    values = {"SUITE": suite, "PROFKIT": source or "profkit"}
    if forge == "github":
        files[".github/actions/profkit/action.yml"] = _recipe("action.yml", setup, values)
        files[".github/workflows/performance.yml"] = _recipe("github.yml", setup, values)
        files[".github/workflows/performance-comment.yml"] = _recipe("github-comment.yml", setup, values)
        notes.append("comments begin once performance-comment.yml is on the default branch")
    else:
        files[".gitlab/profkit.yml"] = _recipe("gitlab.yml", setup, values)
        include = "include:\n  - local: .gitlab/profkit.yml\n"
        if not (root / ".gitlab-ci.yml").exists():
            files[".gitlab-ci.yml"] = include
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
        if (plan.root / name).exists() and _read(plan.root / name) != text and not force:
            raise UsageError(f"{name} is there already, with other content", "profkit gate --init --force")
    for name, text in plan.files.items():
        path = plan.root / name
        with writing(path, f"ls -ld {path.parent}"):
            make_parents(path.parent)
            write_whole(path, (text,))
    read_config(plan.root / plan.suite)


# ---------------------------------------------------------------- which benchmarks there are


def _find(root: Path, names: Sequence[str]) -> list[FoundBenchmark]:
    suite = list(_of_python(root, [name for name in names if name.endswith(".py")]))
    suite += _google(root, [name for name in names if Path(name).name == "CMakeLists.txt"])
    if not suite:
        raise UsageError(
            "no benchmark was found: no test with pytest-benchmark's fixture, no asv.conf.json, no bench/*.py, "
            "no Google Benchmark in a CMakeLists.txt that git tracks",
            "profkit gate --init -- python bench.py",
        )
    unique: dict[str, FoundBenchmark] = {}
    for each in suite:
        name = each.name if each.name not in unique else f"{each.name}-{len(unique)}"
        unique[name] = FoundBenchmark(name, each.command, each.kind, each.needs)
    return list(unique.values())


def _of_python(root: Path, names: Sequence[str]) -> Iterator[FoundBenchmark]:
    asv = {
        name.rpartition("/")[0]
        for name in ("asv.conf.json", "benchmarks/asv.conf.json")
        if (root / name).is_file()
    }
    for name in names:
        path, text = Path(name), _read(root / name)
        inside = bool(_FOLDERS & set(path.parts[:-1]))
        if _FIXTURE.search(text) and path.name != "conftest.py":
            plugin = ("-p", "no:cacheprovider", "-p", "profkit.runtime.suites", "--benchmark-only")
            line = ("python", "-m", "pytest", "-q", *plugin, name)
            yield FoundBenchmark(path.stem, line, "pytest-benchmark", ("pytest", "pytest-benchmark"))
        elif asv and inside and _TIMED.search(text):
            yield FoundBenchmark(path.stem, ("python", "-m", "profkit.runtime.suites", name), "asv")
        elif _is_script(path, text, inside=inside and len(path.parts) == 2):
            yield FoundBenchmark(path.stem, ("python", name), "script")


def _is_script(path: Path, text: str, *, inside: bool) -> bool:
    if path.name.startswith(("_", "test_", "conftest", "setup.")) or ("__main__" not in text and not inside):
        return False
    return inside or (len(path.parts) == 1 and path.name.startswith("bench"))


def _google(root: Path, names: Sequence[str]) -> Iterator[FoundBenchmark]:
    for name in names:
        for target in dict.fromkeys(_GOOGLE.findall(_read(root / name))):
            binary = str(Path("build", Path(name).parent, target))
            # As many calls in both versions: by default it runs as many as fill half a second.
            yield FoundBenchmark(target, (binary, "--benchmark_min_time=1000x"), "Google Benchmark")


def _name(command: Sequence[str]) -> str:
    words = [word for word in command if not word.startswith("-")]
    return Path(words[1] if len(words) > 1 else words[0]).stem


# ---------------------------------------------------------------- what is written


def _suite_text(found: Sequence[FoundBenchmark]) -> str:
    lines = [
        "# What is compared in each request; every key: profkit nightly --example. Try it here:",
        f"#   profkit compare --suite {SUITE} --base HEAD~1",
        "version: 1",
        "defaults:",
        "  floors: {time.median: 5 %}    # a smaller change does not count",
    ]
    if any(each.kind == "Google Benchmark" for each in found):
        lines += ["pairs:    # builds the checkout of the baseline", f"  setup: [sh, -c, {_quoted(_CMAKE)}]"]
    lines.append("workloads:")
    for each in found:
        words = ", ".join(map(_quoted, each.command))
        lines += [f"  - name: {_quoted(each.name)}", f"    command: [{words}]"]
    return "\n".join(lines) + "\n"


def _quoted(word: str) -> str:
    return (
        word
        if _YAML_PLAIN.fullmatch(word) and not word.startswith("-")
        else json.dumps(word, ensure_ascii=False)
    )


def _set_up(root: Path, names: Sequence[str], found: Sequence[FoundBenchmark], sudo: str) -> list[str]:
    """The lines of shell that make the project ready; the baseline takes its Python modules from its own checkout."""
    lines = []
    if "requirements.txt" in names:
        lines.append("python -m pip install --quiet -r requirements.txt")
    project = any(word in _read(root / "pyproject.toml") for word in ("[project]", "[build-system]"))
    if project or "setup.py" in names:
        lines.append("python -m pip install --quiet .")
    if needs := sorted({need for each in found for need in each.needs}):
        lines.append(f"python -m pip install --quiet {' '.join(needs)}")
    if any(each.kind == "Google Benchmark" for each in found):
        if any(
            "find_package(benchmark" in _read(root / name)
            for name in names
            if name.endswith("CMakeLists.txt")
        ):
            lines.append(
                f"{sudo}apt-get update -qq && {sudo}apt-get install -y -qq cmake g++ libbenchmark-dev"
            )
        lines.append(_CMAKE)
    return lines or ["echo 'nothing to set up: put what builds your project here'"]


def _recipe(name: str, setup: Sequence[str], values: dict[str, str]) -> str:
    text = (RECIPES / name).read_text(encoding="utf-8")
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return re.sub(
        r"^( *)@SETUP@$", lambda at: "\n".join(at[1] + line for line in setup), text, flags=re.MULTILINE
    )


def _own_source() -> str | None:
    """What pip installs to have this profkit elsewhere; None where it came from a folder without an origin."""
    origin = json.loads(importlib.metadata.distribution("profkit").read_text("direct_url.json") or "{}")
    if not origin:
        return f"profkit=={importlib.metadata.version('profkit')}"
    if "vcs_info" in origin:
        return f"profkit @ git+{_without_user(origin['url'])}@{origin['vcs_info']['commit_id']}"
    folder = Path(__file__).parent
    url = git_line(folder, "remote", "get-url", "origin") if repository_of(folder) else None
    url = re.sub(r"^git@([^:/]+):", r"https://\1/", url or "")
    return f"profkit @ git+{_without_user(url)}" if url.startswith("https://") else None


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _is_gitlab(root: Path) -> bool:
    url = git_line(root, "remote", "get-url", "origin") or ""
    return (root / ".gitlab-ci.yml").exists() or "gitlab" in url


def _read(path: Path) -> str:
    try:
        return read_bounded_text(path, _SIZE)
    except (OSError, UnicodeDecodeError, UsageError):
        return ""
