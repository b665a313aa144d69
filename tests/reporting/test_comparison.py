"""A comparison as text, Markdown and JSON: it fits, it says the verdict first, and nothing in it is obeyed."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import jsonschema
import pytest

from profkit.core.types import Comparison, Revision
from profkit.regression.compare import CompareOptions, compare
from profkit.reporting.json import document as as_json
from tests import documents, gpu_documents, schemas
from tests.comparison_documents import kernel, run, traced, value
from tests.reporting.shown import comparison_markdown as as_markdown
from tests.reporting.shown import comparison_text as as_text

HOSTILE = (
    'void </script><script>alert("x")</script>|`*_[a](http://b)`<\x1b[31m' + "T, " * 1500 + ">()\n\ud800"
)


def pair(by: float = 0.1) -> Comparison:
    return compare(
        run(0.0, value("instructions", 1e7), revision=Revision("a" * 40, False)),
        run(by, value("instructions", 1.2e7), seed=2, revision=Revision("b" * 40, True)),
        CompareOptions(paths=("reports/one", "reports/two")),
    )


def hostile() -> Comparison:
    return compare(
        replace(traced([(kernel(HOSTILE), 10, 1e-2), (kernel(HOSTILE + "2"), 10, 1e-2)]), name=HOSTILE),
        replace(traced([(kernel(HOSTILE), 10, 2e-2), (kernel(HOSTILE + "3"), 10, 2e-2)]), name=HOSTILE),
    )


def all_of_them() -> list[Comparison]:
    other = replace(run(), machine=replace(documents.machine(), cpu="Another"))
    return [
        pair(),
        pair(-0.1),
        pair(0.0),
        compare(run(), other),
        compare(run(), other, CompareOptions(force=True)),
        compare(run(), run()),
        compare(gpu_documents.run(), gpu_documents.run()),
        compare(gpu_documents.of_counters(), gpu_documents.of_counters()),
        hostile(),
    ]


ALL = all_of_them()


@pytest.mark.parametrize("number", range(len(ALL)))
@pytest.mark.parametrize("width", [80, 50])
def test_no_line_is_wider_than_the_screen_and_none_is_obeyed_by_it(number: int, width: int) -> None:
    text = as_text(ALL[number], color=False, width=width)
    assert max(map(len, text.split("\n"))) <= width
    assert "\x1b" not in text
    assert not re.search(r"\b(nan|inf|None)\b", text)


def test_the_verdict_is_the_first_line_and_the_sides_are_told() -> None:
    text = as_text(pair(), color=False)
    assert text.startswith("✗ REGRESSED  Worse: time.median of mlp rose by ")
    flat = " ".join(text.split())
    assert "commit aaaaaaaaaaaa candidate" in flat
    assert "commit bbbbbbbbbbbb with changes" in flat


def test_what_changed_comes_before_why_and_what_is_the_same_is_one_line_with_what_it_could_see() -> None:
    text = as_text(pair(), color=False)
    assert text.index("What changed") < text.index("Why") < text.index("Notes")
    same = as_text(compare(run(), run(seed=2)), color=False)
    assert re.search(r"The same \(and the smallest.*\)\n  Time per iteration \(mlp\) \(\d\.\d %\)", same)


def test_a_refusal_says_what_would_change_it_and_force_is_said_on_top() -> None:
    assert "fix: --force" in as_text(ALL[3], color=False)
    assert as_text(ALL[4], color=False).startswith("FORCED")
    assert "**FORCED" in as_markdown(ALL[4])


def test_markdown_shows_what_came_from_outside_and_obeys_none_of_it() -> None:
    text = as_markdown(hostile())
    assert "<script>" not in re.sub(r"`[^`\n]*`", "", text)
    assert "\n<" not in text.replace("\n<details>", "")
    for line in text.split("\n"):
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) in (5, 6)


@pytest.mark.parametrize("number", range(len(ALL)))
def test_json_follows_its_schema(number: int) -> None:
    document = json.loads(as_json(ALL[number]))
    jsonschema.Draft202012Validator(schemas.comparison()).validate(document)
    assert document["schema"] == "profkit.comparison/2"
