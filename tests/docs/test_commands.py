"""What the documents tell people to type exists: verbs, options, files, links and environment variables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli_runner import profkit
from tests.conftest import ROOT
from tests.docs.shown import PAGES, blocks

CONTRIBUTING = ROOT / "CONTRIBUTING.md"


def calls() -> list[tuple[str, str]]:
    """Page and text of every `profkit ...`: in fenced and indented blocks, in tables and inside sentences."""
    lines = [(block.page, line) for block in blocks() for line in block.lines]
    found = [
        (page, line[line.index("profkit ") :]) for page, line in lines if re.search(r"\bprofkit [a-z-]", line)
    ]
    return list(dict.fromkeys(found))


def test_the_documents_show_every_verb() -> None:
    """Also guards the search above: with nothing found, nothing would be held."""
    assert {line.split()[1] for _, line in calls()} >= {"profile", "record", "summarize", "check", "doctor"}


@lru_cache
def options(verb: str) -> Mapping[str, frozenset[str]]:
    """The options of a verb as its `--help` names them, each with its choices; empty for no verb."""
    said = profkit(*verb.split(), "--help", cwd=ROOT, env={"COLUMNS": "200"})
    found: dict[str, frozenset[str]] = {}
    for line in said.out.splitlines() if said.code == 0 else ():
        names = re.findall(r"(?<!\S)--?[a-z][a-z-]*", line[:30])
        choices = re.search(r"[<\[]([a-z]+(?:\|[a-z]+)+)[>\]]", line)
        found |= dict.fromkeys(names, frozenset(choices[1].split("|") if choices else ()))
    return found


@pytest.mark.parametrize(("page", "line"), calls(), ids=lambda value: str(value)[:60])
def test_a_command_that_is_shown_exists(page: str, line: str) -> None:
    words = shlex.split(re.sub(r"[\[\]]", "", line), comments=True)[1:]
    verb, *mine = words[: words.index("--")] if "--" in words else words
    if verb == "history" and mine and not mine[0].startswith("-"):  # its verbs are two words
        verb = f"history {mine.pop(0)}"
    known = options(verb)
    assert known, f"{page} shows a verb that is not there: {line}"
    for word, following in pairwise([*mine, ""]):
        if word.startswith("-"):
            assert word in known, f"{page} shows an option that is not there: {line}"
            asked = set(following.split("|"))
            assert not known[word] or following.isupper() or asked <= known[word], f"{page}: {line}"


@pytest.mark.parametrize("page", [*PAGES, CONTRIBUTING], ids=lambda page: page.name)
def test_a_link_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []
    anchors = {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
    assert [a for a in re.findall(r"\]\(#([^)]+)\)", text) if a not in anchors] == []


@pytest.mark.parametrize("page", [*PAGES, CONTRIBUTING], ids=lambda page: page.name)
def test_a_path_in_the_project_that_is_named_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`((?:profkit|tests|benchmark|wrappers|setup|docs)/[\w./-]*[\w/])`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []


QUESTIONS = {
    "L2 miss rate": ("cache.l2.miss_rate", "l2-miss-rate"),
    "rocprof": ("registry.py", "BACKENDS"),
    "skipped": ("over-budget", "nothing-to-look-at"),
}


def test_a_function_that_an_answer_names_is_in_the_file_before_it() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("\n## Where is it?\n")[2].partition("\n## ")[0]
    named = re.findall(r"`(profkit/[\w./-]+\.py)`:\s`(?:\w+\.)?(\w+)`", section)
    missing = [
        (file, name)
        for file, name in named
        if not re.search(rf"^ *(?:def |class )?{name}\b", (ROOT / file).read_text("utf-8"), re.MULTILINE)
    ]
    assert len(named) >= 10
    assert missing == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_file_that_answers_a_question_has_what_is_looked_for(question: str) -> None:
    """Also guards the test above for this section: each answer names files of the code, and one has each word."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("\n## Where is it?\n")[2].partition("\n## ")[0]
    answers = re.split(r"\n\n(?=\*\*)", section)
    (answer,) = (text for text in answers if question in text.partition("?**")[0])
    named = [ROOT / name for name in re.findall(r"`(profkit/[\w./-]*[\w/])`", answer)]
    files = [
        file for path in named for file in (path.glob("*.*") if path.is_dir() else (path,)) if file.is_file()
    ]
    texts = [f"{file.name}\n{file.read_text(encoding='utf-8')}" for file in files]
    assert len(named) >= 5
    assert [word for word in QUESTIONS[question] if not any(word in text for text in texts)] == []


def test_every_environment_variable_is_in_the_reference() -> None:
    sources = [
        *(ROOT / "profkit").rglob("*.py"),
        *(ROOT / "setup").glob("*.sh"),
        *(ROOT / "wrappers").glob("*.sh"),
        ROOT / "setup.sh",
        ROOT / "analyze_multibackend.sh",
        ROOT / "tests" / "conftest.py",
    ]
    used = {
        name
        for file in sources
        for name in re.findall(r"\bPROFKIT_[A-Z]+\b", file.read_text(encoding="utf-8"))
    }
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert sorted(name for name in used if f"`{name}`" not in reference) == []


def test_every_exit_code_of_the_command_line_is_in_the_reference() -> None:
    from profkit.cli import INTERNAL_ERROR
    from profkit.core import errors

    kinds = [kind for kind in vars(errors).values() if hasattr(kind, "exit_code")]
    codes = {kind.exit_code for kind in kinds} | {0, 1, 5, INTERNAL_ERROR}
    for page in (ROOT / "docs" / "reference.md",):
        told = {
            int(code)
            for code in re.findall(r"^\| (\d+) \| [a-z]", page.read_text(encoding="utf-8"), re.MULTILINE)
        }
        assert codes <= told, page.name


def test_every_schema_that_leaves_profkit_is_in_the_reference() -> None:
    sources = [file.read_text(encoding="utf-8") for file in (ROOT / "profkit").rglob("*.py")]
    schemas = {
        name
        for text in sources
        for name in re.findall(r'= "(profkit\.[a-z]+/\d)"|"schema": "(profkit\.[a-z]+/\d)"', text)
    }
    reference = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    flat = {one for pair in schemas for one in pair if one}
    assert sorted(name for name in flat if name not in reference) == []


def test_the_targets_file_that_is_shown_is_one(tmp_path: Path) -> None:
    from profkit.profiling.summarize import targets_for

    shown = re.findall(
        r"^```yaml\n(.*?)^```", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE | re.DOTALL
    )
    file = tmp_path / "targets.yaml"
    file.write_text(shown[0])
    told = {t.name: f"{t.operator} {t.threshold}" for t in targets_for("cpu", file, "anything")}
    asked = {"l1-miss-rate": "< 8.0", "ipc": "> 1.5", "page_faults": "< 1000.0", "tight-branches": "< 2.0"}
    assert {name: told.get(name) for name in asked} == asked
    assert "no-leak" not in told
    assert "ipc" not in {t.name for t in targets_for("cpu", file, "gated_mlp")}
