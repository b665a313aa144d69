"""A generation as it is shown: the page in its folder, on a screen, and by the commands that read runs."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from profkit.core.types import GenerationLimits
from profkit.generation.run import write_generation
from profkit.reporting import markdown, terminal
from profkit.reporting.html import page
from profkit.reporting.view import View
from profkit.reporting.views.kernels.generation import view
from tests.cli_runner import profkit
from tests.generation.documents import every_way, failed, generation, operation
from tests.generation.test_generation_files import with_kernels
from tests.reporting.html.markup import problems


def on_screen(shown: View, *, details: bool = False) -> str:
    return terminal.render(shown, details=details, color=False, width=80)


def in_one_line(shown: View) -> str:
    return " ".join(on_screen(shown).split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a generation, with a profile of one attempt."""
    root = with_kernels(tmp_path_factory.mktemp("generation") / "spring", every_way())
    for name in ("relu/attempt_2/profiles/1", "relu/attempt_2"):
        (root / name).mkdir(exist_ok=True, parents=True)
        (root / name / "report.html").write_text("a page")
    assert write_generation(root, every_way()) == ()
    return root


# ---------------------------------------------------------------- the page


def test_every_link_of_the_page_is_a_file_below_the_folder(folder: Path) -> None:
    text = (folder / "index.html").read_text(encoding="utf-8")
    links = [unquote(link) for link in re.findall(r'<a [^>]*href="([^#"][^"]*)"', text)]
    assert [link for link in links if not link.startswith("./") or not (folder / link).is_file()] == []
    assert {
        "./relu/relu_attempt_3.py",
        "./relu/relu_attempt_2_feedback.txt",
        "./relu/attempt_2/report.html",
        "./relu/attempt_2/profiles/1/report.html",
    } <= set(links)
    assert problems(text) == []
    assert "http://" not in text.replace("http://www.w3.org/", "")


# ---------------------------------------------------------------- what it says


def test_a_screen_of_80_columns_holds_it() -> None:
    for details in (False, True):
        text = on_screen(view(every_way(), Path("generated_kernels/spring")), details=details)
        assert max(map(len, text.splitlines())) <= 80
    lines = [line.split() for line in text.splitlines()]
    row = "relu.default 3 of 5 1.64 x (1.59-1.69, FASTER) 68.3 % attempts"
    assert row.split() in lines


def test_what_a_stranger_wrote_is_text_and_no_markup() -> None:
    evil = "<script>alert(1)</script> [x](javascript:1) | \x1b[31m `"
    document = generation(
        operation("relu.default", failed(1, "crashed", evil), failed(2, "no-answer", evil), folder="relu"),
        model=evil,
    )
    html = page.render(view(document))
    assert "<script>alert" not in html
    assert problems(html) == []
    assert "\x1b" not in on_screen(view(document), details=True)
    assert "<script>" not in markdown.render(view(document))


def test_a_generation_that_has_not_all_kernels_says_how_to_go_on() -> None:
    one = operation("relu.default", failed(1), stopped="attempts")
    text = in_one_line(view(generation(one, limits=GenerationLimits(5)), Path("runs/a b")))
    assert "profkit generate --resume 'runs/a b' How it" in text
    assert "✗ FAIL 0 of 1 operation has a correct kernel" in text  # and exit 1 beside it
    own = generation(one, suite="mine.py", command=("profkit", "generate", "--suite", "t/mine.py"))
    assert "profkit generate --resume runs/a --suite t/mine.py" in in_one_line(view(own, Path("runs/a")))


# ---------------------------------------------------------------- the commands


@pytest.mark.parametrize(
    "words",
    [
        ("check", "spring"),
        ("report", "spring"),
        ("compare", "spring", "spring"),
        ("summarize", "spring"),
        ("history", "add", "spring"),
        ("scrub", "spring"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_what_reads_runs_says_that_it_is_none_and_what_to_do(folder: Path, words: tuple[str, ...]) -> None:
    said = profkit(*words, cwd=folder.parent)
    assert said.code in (1, 2)
    assert "is a generation of kernels, which its index.html shows" in said.err + said.out
    assert "profkit evaluate --backend directory --kernels spring" in said.err + said.out
