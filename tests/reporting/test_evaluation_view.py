"""An evaluation in a terminal, as Markdown and as a page: what is right and how fast first, then what failed."""

from __future__ import annotations

import re
from dataclasses import replace
from math import nan
from pathlib import Path

import pytest

from profkit.core.types import EvaluationDocument, Fact
from profkit.reporting.html import page
from profkit.reporting.markdown import render as render_markdown
from profkit.reporting.view import plain_text
from profkit.reporting.views.kernels.evaluation import view
from tests.evaluation_documents import a_test, evaluation, every_status, failed, passed, speedup
from tests.reporting.html.markup import problems
from tests.reporting.shown import text_of

FOLDER = Path("reports/kernels")
HOSTILE = "</script><script>document.title='ran'</script>|`*\x1b[31m\u202e\udc80\n#1 @you"
BARE = evaluation(
    *(replace(passed(a_test(f"op{n}.default")), speedup=speedup(1.0 + n, 0.0, 1)) for n in range(3)),
    failed(a_test("mm.default")),
    command=(),
    device="",
)
ODD = {
    "every status": every_status(),
    "nothing": evaluation(),
    "interrupted": replace(every_status(), complete=False, planned=90),
    "all skipped": evaluation(failed(a_test("rand.default"), "skipped", "random")),
    "nothing timed": evaluation(passed(a_test("add.Tensor")), failed(a_test("mm.default"), "lost")),
    "no number": evaluation(failed(a_test("mm.default"), max_abs_error=nan, allowed_share=nan)),
    "without intervals": BARE,
    "hostile": evaluation(
        passed(replace(a_test("add.Tensor"), operation=HOSTILE, arguments=HOSTILE), 1.5),
        failed(replace(a_test("mul.Tensor"), operation=HOSTILE), "incorrect", HOSTILE, traceback=HOSTILE),
        failed(a_test("sin.default"), "skipped", HOSTILE),
        notes=(Fact.message(HOSTILE),),
    ),
    "many": evaluation(
        *(passed(a_test(f"operation_of_a_long_name_{n}.default"), 1 + n / 100) for n in range(150)),
        *(failed(a_test(f"bad_{n}.default"), "incorrect", f"error {n}") for n in range(60)),
    ),
}  # fmt: skip


def terminal(document: EvaluationDocument, *, details: bool = False, width: int = 100) -> str:
    return text_of(view(document, FOLDER), details=details, width=width)


def headline(document: EvaluationDocument) -> str:
    return plain_text(view(document).headline[0])


def test_the_first_line_says_how_many_are_right_and_how_much_faster() -> None:
    document = evaluation(
        passed(a_test("relu.default"), 1.5), passed(a_test("add.Tensor"), 1.2), failed(a_test("mm.default"))
    )
    assert headline(document) == (
        "2 of 3 operations correct; 1.34 x (1.32-1.36, FASTER) as fast as PyTorch over 2 timed tests"
    )
    assert headline(evaluation(passed(a_test("relu.default")))) == "1 of 1 operation correct; none was timed"
    assert headline(evaluation()) == "No test was decided"


def test_what_was_asked_for_is_the_denominator_and_what_did_not_run_is_not_complete() -> None:
    waits = failed(a_test("mm.default"), "not-run", "Triton needs a GPU")
    two = (passed(a_test("relu.default")), passed(a_test("add.Tensor")))
    asked = evaluation(*two, waits)
    assert headline(asked) == "2 of 3 operations correct, 1 not run; none was timed"
    assert "COMPLETE" not in terminal(asked)
    assert "? NOT ALL RUN" in terminal(asked)
    random = failed(a_test("rand.default"), "skipped", "its result is random")
    assert headline(evaluation(*two, waits, random)) == (
        "2 of 4 operations correct, 1 not run, 1 skipped; none was timed"
    )
    assert "✓ COMPLETE" in terminal(evaluation(*two, random))
    assert "UNDECIDED" in terminal(evaluation(waits))


def test_what_failed_stands_before_the_operations_with_the_line_that_does_it_again() -> None:
    document = every_status()
    cheat = next(result for result in document.results if result.status == "cheat")
    told = terminal(document)
    assert told.index(f"profkit evaluate --replay {cheat.test.id} {FOLDER}\n") < told.index("\nOperations\n")
    assert re.search(r"✗ incorrect +sum.default  wrong values: element \(3,\) is 1.5", told)
    assert told.count("wrong values") == 1  # two tests that differ in numbers alone
    assert f"with {cheat.test.arguments}\n" in told


def test_an_operation_has_a_row_with_interval_word_error_and_bound() -> None:
    told = terminal(every_status())
    assert re.search(r"relu.default +passed +3 of 3 +1.47 x +1.45-1.49 +FASTER +25.0 % +28.8 %", told)
    assert not re.search(r"dropout.default +skipped", told)  # a note names it


def test_statuses_add_up_and_what_is_skipped_is_named_with_its_number() -> None:
    told = " ".join(terminal(every_status()).split())
    counts = re.search(r"Tests (.*?)\.", told)
    assert counts is not None
    assert sum(map(int, re.findall(r"\d+", counts[1]))) == 21
    assert "2 tests skipped: its result is random (dropout.default and rand.default)" in told


@pytest.mark.thorough
@pytest.mark.parametrize("name", ODD)
def test_whatever_is_in_it_every_view_shows_it_in_its_width(name: str) -> None:
    document = ODD[name]
    for width in (80, 40):
        told = terminal(document, details=True, width=width)
        typed = [line for line in told.splitlines() if str(FOLDER) not in line]
        assert max(map(len, typed)) <= width
    made = render_markdown(view(document, FOLDER), None)
    for text in (told, made):
        assert not re.search(r"\b(?:nan|inf|None)\b", text)
        assert not {"\x1b", "\u202e", "\udc80"} & set(text)
    assert problems(page.render(view(document, FOLDER))) == []


def test_an_error_beyond_all_rounding_is_said_in_words_and_a_crash_has_its_last_line_apart() -> None:
    wrong = failed(
        a_test("sum.default"), reason="it is 1.5", fault="values", max_abs_error=9e37, allowed_share=9.43e44
    )
    crash = failed(a_test("mm.default"), "crashed", "its process was killed by SIGSEGV", last_line="half way")
    shown = " ".join(terminal(evaluation(wrong, crash)).split())
    assert "e+44" not in shown
    assert "the largest error is no rounding error: more than 1,000 times what rounding explains" in shown
    assert "> 1,000 x" in shown
    assert "its last line: half way" in shown
