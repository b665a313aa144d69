"""A run's screen has each target in a line: its value, its threshold, and met, missed or why it is not judged."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from profkit.core.types import CodeSpot, Fact, PassResult, Place, RunDocument, Threshold
from profkit.profiling.summarize import judge_document, targets_for
from profkit.reporting.facts import BRIEF, fact_text
from profkit.reporting.screen import Screen
from profkit.reporting.sentences.brief import REASONS
from profkit.reporting.view import TableColumn
from tests import documents, kernel_documents
from tests.answers.trial import recorded_document, truth_set
from tests.conftest import ROOT
from tests.reporting.shown import run_page, run_text
from tests.reporting.test_renderers import FOLDER, judged


def lines_of_targets(document: RunDocument, width: int = 80, *, details: bool = False) -> list[str]:
    text = run_text(document, FOLDER, color=False, details=details, width=width)
    section = text[text.index("\nTargets\n") :].split("\n\n")[0]
    return section.strip("\n").split("\n")[2:]


@pytest.mark.parametrize("width", [80, 120])
def test_each_target_on_the_run_has_a_line_with_its_value_threshold_and_word(width: int) -> None:
    lines = lines_of_targets(judged(), width)
    assert "  ✗ l1-miss-rate       9.0 % (sim)  < 5 %            missed" in lines
    assert "  ✓ l3-miss-rate      0.09 % (sim)  < 20 %           met" in lines
    starts = [line for line in lines if line[2] in "✗✓?-"]
    names = [verdict.target for verdict in judged().verdicts if verdict.scope.kind in ("run", "region")]
    assert [line.split()[1] for line in starts] == names
    assert all(re.search(r" (<|>|<=|>=) [\d.]+( %)? ", line) for line in starts)


def test_what_is_not_judged_has_its_threshold_and_says_why_in_a_few_words() -> None:
    (line,) = [line for line in lines_of_targets(judged(), 120) if "memory-bandwidth" in line]
    assert re.fullmatch(r"  - memory-bandwidth +\S.* > 60 % +\S.{3,27}", line)


RECORDINGS = ("fp32_training", "loader_main", "transpose", "jax_steps", "ask_each_score", "basket", "clicks")


@pytest.fixture(scope="module", params=RECORDINGS)
def recorded(request: pytest.FixtureRequest) -> RunDocument:
    """A run of an H100, judged as it is today."""
    folder = ROOT / "tests" / "answers" / "gpu" / "recordings" / request.param
    return recorded_document(truth_set(gpu=True), request.param, folder)


def test_the_kernel_that_is_judged_has_its_tensor_cores_caches_and_memory_beside_the_targets() -> None:
    folder = ROOT / "tests" / "answers" / "gpu" / "recordings" / "transpose"
    document = recorded_document(truth_set(gpu=True), "transpose", folder)
    said = " ".join(" ".join(lines_of_targets(document)).split())
    assert re.search(
        r"Its units, of their peaks: L1 [\d.]+ %, L2 [\d.]+ % \([\d.]+ % of its accesses hit\), DRAM [\d.]+ %\.",
        said,
    )


def test_each_target_of_a_recorded_run_has_one_line_of_80_columns(recorded: RunDocument) -> None:
    lines = [line for line in lines_of_targets(recorded) if not line.startswith("  Of ")]
    names = [verdict.target for verdict in recorded.verdicts if verdict.scope.kind in ("run", "region")]
    assert [line.split()[1] for line in lines[-len(names) :]] == names
    assert all(line[2] in "✗✓?-" for line in lines[-len(names) :])
    assert not [line for line in lines if "…" in line.split("  ")[-1][:12]]


def two_kernels(large: float, small: float) -> RunDocument:
    """Kernels with 80 and 20 % of the GPU time, of such an occupancy each, and limited by nothing."""
    values = dict.fromkeys(("sm.throughput", "memory.throughput", "issue.active"), 30.0)
    document = kernel_documents.document(
        {
            kernel_documents.kernel("large"): (0.8, {**values, "occupancy.achieved": large}),
            kernel_documents.kernel("small"): (0.2, {**values, "occupancy.achieved": small}),
        }
    )
    return judge_document(document, targets_for("cuda"))


def line_of(target: str, lines: list[str]) -> str:
    (line,) = [line for line in lines if line[4:].startswith(f"{target} ")]
    return line


def test_the_number_is_that_of_the_kernel_that_takes_most_and_no_average_over_kernels_that_differ() -> None:
    document = two_kernels(90.0, 80.0)
    (verdict,) = [v for v in document.verdicts if v.target == "occupancy" and v.scope.kind == "run"]
    assert (verdict.verdict, verdict.value) == ("pass", 90.0)
    text = run_text(document, FOLDER, color=False, details=False)
    assert "  Of large (4096 of 256), 80.0 % of the GPU time, if no other kernel is named.\n" in text
    assert " ".join(line_of("occupancy", text.split("\n")).split()) == "✓ occupancy 90.0 % > 75 % met"


def test_of_kernels_that_were_counted_in_part_the_number_is_shown_with_how_much_was_not() -> None:
    values = {**dict.fromkeys(("sm.throughput", "memory.throughput"), 30.0), "occupancy.achieved": 90.0}
    known, other = kernel_documents.kernel("counted"), kernel_documents.kernel("other")
    document = kernel_documents.document({known: (0.6, values), other: (0.4, {})})
    document = judge_document(document, targets_for("cuda"))
    lines = run_text(document, FOLDER, color=False, details=False).split("\n")
    assert " ".join(line_of("occupancy", lines).split()) == "? occupancy 90.0 % > 75 % 40.0 % not counted"


def test_a_number_of_another_kernel_than_the_one_that_takes_most_names_it() -> None:
    lines = run_text(two_kernels(90.0, 40.0), FOLDER, color=False, details=False).split("\n")
    assert " ".join(line_of("occupancy", lines).split()) == "✗ occupancy 40.0 % > 75 % missed in small"


def test_numbers_of_the_place_that_takes_most_say_whose_they_are_and_count_in_the_first_line() -> None:
    why = Fact.of("value l1-miss-rate", value=42.0, unit="%", quality="simulated")
    reason = Fact.of("in-function", Fact.of("against", why), name="relax(grid const&, int)", by="time")
    missed = documents.verdict(
        "fail",
        "l1-miss-rate",
        value=42.0,
        unit="%",
        reason=reason,
        threshold=Threshold("<", 5.0, "%"),
        weight=0.832,
    )
    spot = CodeSpot(
        0.8, 1.0, "native", Place(function="relax(grid const&, int)", file="/work/src/graph.cpp", line=41)
    )
    document = replace(judged(), verdicts=(missed,), hot_spots=(spot,))
    text = run_text(document, FOLDER, color=False, details=False)
    assert "  L1 is that of relax, graph.cpp:41: 83.2 % of the time.\n" in text
    assert " ".join(line_of("l1-miss-rate", text.split("\n")).split()) == "✗ l1-miss-rate 42.0 % < 5 % missed"
    assert text.startswith("✗ 1 target missed  l1-miss-rate\n")


def test_a_time_that_varies_more_than_was_asked_says_so_beside_its_value() -> None:
    reason = Fact.of("against", Fact.of("value time-precision", value=51.1, unit="%"))
    wide = documents.verdict(
        "unknown", "time-precision", value=51.1, unit="%", reason=reason, threshold=Threshold("<=", 1.0, "%")
    )
    lines = lines_of_targets(replace(judged(), verdicts=(wide,)))
    assert line_of("time-precision", lines).endswith("varies too much")


def test_a_value_beyond_its_threshold_that_counts_as_met_says_why() -> None:
    value = Fact.of("value bank-conflicts", value=98_900.0, unit="count")
    reason = Fact("but", parts=(value, Fact.of("passes-many-arbitration-alone-makes", value=1.4, unit="%")))
    tolerated = documents.verdict(
        "pass",
        "bank-conflicts",
        value=98_900.0,
        unit="count",
        reason=reason,
        threshold=Threshold("<=", 0.0, "count"),
    )
    (line,) = lines_of_targets(replace(judged(), verdicts=(tolerated,)), 120)
    assert line.endswith("met: arbitration alone")


def unfinished(reason: Fact, fix: str, tool: str | None = "valgrind") -> RunDocument:
    """The document of a run on the CPU whose counters are not there."""
    document = documents.document()
    counted = PassResult("counters", tool, "skipped", reason=reason, fix=fix)
    passes = tuple(counted if one.name == "counters" else one for one in documents.passes())
    readings = tuple(r for r in document.readings if r.metric.split(".")[0] in ("time", "memory"))
    return judge_document(
        replace(document, passes=passes, counters=(), readings=readings, profiles=(), timings=()),
        targets_for("cpu"),
    )


def test_what_did_not_fit_says_so_with_the_budget_that_it_needs_and_never_asks_the_doctor() -> None:
    reason = Fact.of("over-budget", seconds=17.0, left=4.0, budget=24.0)
    text = run_text(unfinished(reason, "--budget 37"), FOLDER, color=False, details=False)
    lines = text.split("\n")
    said = " ".join(" ".join(lines[:3]).split())
    assert "no time left (5): --budget 37; not measured (2)" in said
    assert "; ".join(shared_reasons(text)).endswith("no time left: --budget 37")
    assert "profkit doctor" not in text


def shared_reasons(text: str) -> list[str]:
    """The lines of a screen for several targets of which no value is known for one reason."""
    section = text[text.index("\nTargets\n") :].split("\n\n")[0]
    return re.findall(r"\? ([\w-]+, [^?✗✓]+)", " ".join(section.split()))


def test_targets_without_a_value_for_one_reason_are_one_line_where_they_are_more_than_three() -> None:
    reason = Fact.of("over-budget", seconds=17.0, left=4.0, budget=24.0)
    document = unfinished(reason, "--budget 37")
    (line,) = shared_reasons(run_text(document, FOLDER, color=False, details=False))
    names = line.partition(":")[0].split(", ")
    assert names[:4] == ["l1-miss-rate", "l2-miss-rate", "l3-miss-rate", "branch-miss-rate"]
    assert {"ipc", "no-leak"}.isdisjoint(names)  # for other reasons
    three = [verdict for verdict in document.verdicts if verdict.target in names[:3]]
    text = run_text(replace(document, verdicts=tuple(three)), FOLDER, color=False, details=False)
    assert not shared_reasons(text)
    assert line_of("l2-miss-rate", text.split("\n")).endswith("no time left: --budget 37")


def test_what_a_simulation_never_has_is_not_promised_for_a_larger_budget() -> None:
    reason = Fact.of("over-budget", seconds=17.0, left=4.0, budget=24.0)
    lines = run_text(unfinished(reason, "--budget 37"), FOLDER, color=False, details=False).split("\n")
    assert line_of("ipc", lines).endswith("needs hardware counters")


def test_a_pass_that_failed_is_no_question_for_the_doctor_either() -> None:
    failed = unfinished(Fact.message("the workload was killed by SIGKILL"), "")
    text = run_text(failed, FOLDER, color=False, details=False)
    assert "profkit doctor" not in text.split("\n\n")[0]
    assert "; ".join(shared_reasons(text)).endswith("its pass was skipped")


@pytest.mark.parametrize("code", ["no-python-program", "nothing-to-explain", "no-kernel-missed"])
def test_a_pass_without_an_object_is_not_mentioned(code: str) -> None:
    found = (PassResult("timing", None, "finished"), PassResult("trace", "perf", "finished"))
    without = PassResult("stacks", None, "skipped", reason=Fact.of(code, program="a.out"))
    for document in (replace(documents.empty(), passes=(*found, without)),):
        for details in (True, False):
            text = run_text(document, FOLDER, color=False, details=details)
            assert "Not finished" not in text
            assert "of 3" not in text
    skipped = replace(
        without, reason=Fact.of("over-budget", seconds=9.0, left=4.0, budget=24.0), fix="--budget 29"
    )
    text = run_text(replace(documents.empty(), passes=(*found, skipped)), FOLDER, color=False, details=False)
    assert "2 of 3 passes finished" in text
    assert "Not finished: stacks (no time left: --budget 29). More: report.md" in text


def test_check_has_the_same_lines_above_its_sentences() -> None:
    text = run_text(judged(), FOLDER, color=False)
    assert text.index("\nTargets\n") < text.index("\n  Why, and what to try\n")
    assert lines_of_targets(judged(), details=True) == lines_of_targets(judged())


def test_a_run_without_verdicts_has_no_such_section() -> None:
    assert "Targets" not in run_text(replace(judged(), verdicts=()), FOLDER, color=False)


def test_each_reason_for_not_judging_has_a_short_form() -> None:
    """The texts beside the numbers are those of `REASONS`, for each condition of each backend's targets."""
    for file in sorted((ROOT / "profkit" / "backends").glob("*/targets.yaml")):
        for code in re.findall(r"otherwise: ([a-z0-9-]+)", file.read_text(encoding="utf-8")):
            assert code in REASONS, f"{file.parent.name}: {code} has no short form"
    # Those with values are their codes here, and `brief_reason` leaves out what does not fit.
    texts = {code: REASONS.write(Fact(code), fact_text) for code in REASONS}
    assert {code: text for code, text in texts.items() if len(text) > BRIEF} == {}


def test_no_word_of_a_table_is_broken_where_the_screen_has_room_for_it() -> None:
    place = "models/attention_block.py:1204"
    screen = Screen(color=False, width=80)
    columns = (TableColumn("share"), TableColumn("place"), TableColumn("what it does"))
    does = "runs: 12,000 x sqlite3.Connection.execute, 0.21 ms each, in 4 threads"
    screen.grid(columns, [[["████████ 100 %  2.08 s"], [f"AttentionBlock.forward {place}"], [does]]])
    text = screen.text()
    assert place in text
    assert "sqlite3.Connection.execute," in text
    assert max(map(len, text.split("\n"))) <= 80


@pytest.mark.parametrize("length", range(60, 200, 7))
@pytest.mark.parametrize("how", ["line", "labelled", "grid"])
def test_the_number_of_a_line_stays_in_one_piece_beside_its_file(length: int, how: str) -> None:
    place = f"/{'directory/' * 30}"[: length - 13] + "/train.py:1204"
    screen = Screen(color=False, width=80)
    if how == "line":
        screen.line("- ", "hot: ", place, " and more", hang=2)
    elif how == "labelled":
        screen.labelled(("Hot", "dim"), f"at {place}: it is slow", width=10)
    else:
        screen.grid([TableColumn("what"), TableColumn("where")], [[["a"], [place]]])
    text = screen.text()
    assert max(map(len, text.splitlines())) <= 80
    assert re.search(r"train\.py:1204\b", text), text
    assert place in re.sub(r"\s", "", text).replace("Hotat", "Hot at")  # nothing is lost


def test_words_longer_than_the_screen_are_broken_and_nothing_is_lost() -> None:
    screen = Screen(color=False, width=40)
    long = "x" * 90
    screen.grid((TableColumn("a"), TableColumn("b")), [[[long], ["y" * 5]]])
    text = screen.text()
    assert text.count("x") == 90
    assert max(map(len, text.split("\n"))) <= 40


def test_a_page_has_a_line_for_each_reason_why_targets_are_not_known_above_its_pictures() -> None:
    document = unfinished(Fact.of("over-budget", seconds=17.0, left=4.0, budget=24.0), "--budget 37")
    page = run_page(document)
    above, below = page.split('id="targets"')[1], page.split('id="verdicts"')[1]
    above = re.sub(r"<[^>]+>", "", above.split("<section")[0])
    names = [v.target for v in document.verdicts if v.verdict == "unknown" and v.value is None]
    assert len(names) > 3
    assert above.count("no time left: --budget 37") == 1
    assert all(above.count(name) == 1 for name in names)  # none is lost by that
    assert all(name in below for name in names)


def test_a_page_with_few_unknown_targets_keeps_a_row_for_each() -> None:
    page = run_page(judged())
    above = page.split('id="targets"')[1].split("<section")[0]
    assert above.count("<tr>") >= len({v.target for v in judged().verdicts if v.scope.kind == "run"})
