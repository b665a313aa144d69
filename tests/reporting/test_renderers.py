"""What people see: 80 columns, what to do first, and nothing from outside that a terminal or browser would obey."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profkit.analysis.summaries.readings import unavailable_reading
from profkit.core.types import (
    RUN,
    Check,
    Fact,
    Hotspot,
    Insight,
    PassPlan,
    PassResult,
    Place,
    Plan,
    Profile,
    RunDocument,
    SampleSet,
    Scope,
    Summary,
    Workload,
)
from profkit.profiling.summarize import judge_document, targets_for
from profkit.reporting import json as json_report
from profkit.reporting.markdown import escape_markdown, inline_code
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.views import plan as plan_view
from profkit.reporting.views import run_text as views_run_text
from profkit.reporting.views.summaries import concern_sections
from tests import documents, schemas
from tests.documents import reading, verdict
from tests.reporting.shown import run_markdown, run_text, text_of
from tests.spoken import message

FOLDER = Path("reports/20261120-054700-gated_mlp-cpu")
HOSTILE = (
    "[red]x[/red] <script>alert(1)</script> \x1b[31m\x1b]0;title\x07 \u202egnp.exe `rm` | a\nb @everyone"
)


def judged(document: RunDocument | None = None) -> RunDocument:
    base = replace(
        document or documents.document(),
        readings=tuple(
            reading(metric, value, unit, scope=RUN)
            for metric, value, unit in (
                ("instructions", 41.2e6, "count"),
                ("cache.l1.miss_rate", 9.0, "%"),
                ("cache.l2.miss_rate", 10.3, "%"),
                ("cache.l3.miss_rate", 0.09, "%"),
                ("branch.miss_rate", 0.6, "%"),
                ("simd.utilization", 97.0, "%"),
                ("flops", 54.1e6, "FLOP"),
                ("dram.bytes", 1.1e6, "B"),
            )
        ),
    )
    return judge_document(base, targets_for("cpu"))


def hostile() -> RunDocument:
    """Every text that comes from outside is hostile."""
    scope = Scope("function", HOSTILE)
    verdict = documents.verdict("fail", HOSTILE, HOSTILE, unit="%")
    missing = (unavailable_reading("memory.python_peak", RUN, message(HOSTILE), HOSTILE),)
    spots = (Hotspot(HOSTILE, 1.0, 1.0, 1, HOSTILE, 3, HOSTILE),)
    document = judged()
    return replace(
        document,
        name=HOSTILE,
        workload=Workload((HOSTILE, "--x"), HOSTILE, HOSTILE),
        passes=tuple(replace(p, reason=message(HOSTILE), fix=HOSTILE, log=HOSTILE) for p in document.passes),
        profiles=(Profile(HOSTILE, "s", 1.0, spots),),
        summaries=(Summary("memory", missing), Summary(HOSTILE, missing)),
        verdicts=(verdict, replace(verdict, scope=scope)),
        notes=(Fact.message(HOSTILE),),
        failure=HOSTILE,
    )


# ---------------------------------------------------------------- terminal


@pytest.mark.parametrize("width", [80, 60, 120])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    for document in (judged(), hostile(), documents.empty()):
        lines = run_text(document, FOLDER, color=False, width=width).split("\n")
        assert max(len(line) for line in lines) <= width


def test_the_first_screen_says_what_how_long_and_the_verdicts_and_counts_without_a_place_advise_nothing() -> (
    None
):
    lines = run_text(judged(), FOLDER, color=False).split("\n")
    head = lines[:24]
    counts = "; 3 could not be checked, 3 met, 1 not applicable"
    assert " ".join(head[:2]).replace("  ", " ").startswith("✗ 3 targets missed l1-miss-rate, l2-miss-rate,")
    assert counts in " ".join(line.strip() for line in head[:2])
    assert head[2] == "gated_mlp on cpu"
    assert head[3] == "$ python benchmark/gated_mlp.py --backend cpu -b 8"
    assert any(re.fullmatch(r"Time +4\.10 ms ±2\.2 % per iteration", line) for line in head)
    assert not [line for line in lines if re.match(r"  \d\. ", line)]


def test_failures_stand_before_doubts_before_passes() -> None:
    words = re.findall(r"^  . (FAIL|UNKNOWN|PASS|N/A) ", run_text(judged(), color=False), re.M)
    assert words == sorted(words, key=["FAIL", "UNKNOWN", "PASS", "N/A"].index)
    assert set(words) == {"FAIL", "UNKNOWN", "PASS", "N/A"}


def test_colour_only_where_it_is_asked_for_or_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" in run_text(judged(), color=True)
    assert "\x1b" not in run_text(judged())  # standard output is no terminal here
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in run_text(judged())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run_text(judged())


def test_a_time_that_is_mostly_noise_is_not_shown_as_known() -> None:
    noisy = replace(
        documents.timing(), processes=tuple(SampleSet(documents.noise(40, 1e-3 * k)) for k in (1, 9, 3))
    )
    text = run_text(judged(replace(documents.document(), timings=(noisy,))), color=False)
    assert re.search(r"Time +about 3\.00 ms per iteration, too noisy to say more \(±", text)
    assert not re.search("✗ FAIL +roofline", text)


def test_a_failed_pass_has_its_reason_its_fix_and_its_log() -> None:
    text = run_text(judged(), color=False)
    assert re.search("Passes +4 of 5 finished", text)
    assert "- tracemalloc failed: the workload was killed by SIGKILL" in text
    assert "fix: use a smaller batch" in text
    assert "log: logs/tracemalloc.log" in text


def test_a_failed_run_says_so_at_the_top() -> None:
    document = replace(documents.document(), state="failed", failure="the workload exited with 3")
    head = run_text(document, color=False).split("\n")[:5]
    assert head[0] == "✗ Failed: the workload exited with 3"
    assert "gated_mlp on cpu (failed)" in head


def test_without_details_a_run_is_its_headlines_and_what_went_wrong() -> None:
    text = run_text(judged(), FOLDER, details=False, color=False)
    assert len(text.splitlines()) <= 60  # ten of them are its targets
    sections = re.findall(r"^([A-Z][\w ]+)", text[text.index("All numbers") :], re.M)
    assert sections == ["All numbers", "Passes", "Files", "Next", "To know more "]
    short = text[text.index("All numbers") : text.index("\nPasses\n")]
    assert re.findall(r"^  (\w+)  ", short, re.M) == ["Functions", "Python", "Memory", "Trace"]


def test_no_headline_repeats_the_name_of_its_concern() -> None:
    headlines = {concern: section.headline for concern, section in concern_sections(judged()).items()}
    assert headlines["instructions"] == "41.2 M (simulated) and SIMD share 97.0 % (simulated)."


@pytest.mark.parametrize("color", [True, False])
def test_a_hostile_name_is_shown_and_not_obeyed(color: bool) -> None:
    text = run_text(hostile(), Path(HOSTILE), color=color)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert "\x1b" not in shown
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "[red]x[/red]" in text
    if color:
        assert "\x1b[31m�" not in text  # our own red has its own end; theirs is gone
        assert "]0;title" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\nb\tc\rd", "a b c d"),
        ("\x1b[31m", "�[31m"),
        ("\x9b31m", "�31m"),
        ("a\u202eb\u2066c\u200bd\ufeffe", "a�b�c�d�e"),
        ("\u2028", "�"),
        ("\ud800", "�"),
        ("é 日本 ✓", "é 日本 ✓"),
    ],
)
def test_what_a_terminal_would_obey_is_made_visible(text: str, shown: str) -> None:
    assert without_control_characters(text) == shown


# ---------------------------------------------------------------- actions


def test_of_the_verdicts_only_missed_targets_are_to_be_done_and_none_twice() -> None:
    inner = Scope("function", "f")
    verdicts = (
        verdict("unknown", "a", "install it"),
        verdict("pass", "b", "nothing"),
        verdict("fail", "c", "inner", scope=inner),
        verdict("fail", "d", "outer"),
        verdict("fail", "d", "outer", scope=inner),
        verdict("unknown", "e", "install it"),
        verdict("unknown", "f"),
        verdict("unknown", "g", "last"),
    )
    found = views_run_text.actions(replace(documents.empty(), verdicts=verdicts))
    assert [action.what for action in found] == ["outer", "inner"]
    assert found[1].why == "in f: because c"


def test_what_would_be_known_by_measuring_stands_in_the_last_line_alone() -> None:
    verdicts = (
        verdict("fail", "d", "outer"),
        verdict("unknown", "a", "install it"),
        verdict("unknown", "e", "install it"),
        verdict("unknown", "g", "last"),
    )
    document = replace(documents.empty(), verdicts=verdicts)
    text = run_text(document, color=False, details=False)
    assert text.rstrip("\n").split("\n")[-1] == "To know more (a, e): install it"
    assert text.count("To know more") == run_markdown(document).count("To know more") == 1
    assert run_markdown(document).index("1. **outer**") < run_markdown(document).index("**To know more**")
    known = replace(document, verdicts=verdicts[:1])
    assert "To know more" not in run_text(known, color=False) + run_markdown(known)


@pytest.mark.parametrize(
    ("place", "option"),
    [
        (None, ""),
        ("ssh:me@gpu1", "--on PLACE "),  # of somebody else's run it would be the machine that gets the files
        ("docker:image", "--on PLACE "),
    ],
)
def test_what_would_be_known_of_a_run_from_elsewhere_is_measured_there(
    place: str | None, option: str
) -> None:
    noisy = replace(verdict("unknown", "t", "quiet the machine"), metric="time.interval", value=9.0)
    passes = (PassResult("timing", None, "finished"),)
    document = replace(documents.empty(), verdicts=(noisy,), passes=passes, place=place)
    text = " ".join(run_text(document, color=False).split())
    assert f"To know more (t): profkit profile {option}--sampling SECONDS -- " in text


def test_where_all_is_as_it_should_be_it_is_said_with_what_was_looked_at() -> None:
    met = tuple(verdict("pass", name) for name in "abc")
    sentence = "No problems found: all 3 targets that apply are met."
    for verdicts, told in (
        (met, True),
        ((*met, replace(verdict("unknown", "t", "more"), metric="time.interval")), True),
        (met[:2], False),
        ((*met, verdict("unknown", "d", "more")), False),
        ((*met, verdict("fail", "d")), False),
    ):
        document = replace(documents.empty(), state="complete", verdicts=verdicts)
        assert (sentence in run_text(document, color=False)) is told


# ---------------------------------------------------------------- markdown


def test_markdown_has_head_verdicts_and_folded_concerns() -> None:
    text = run_markdown(judged())
    assert text.startswith("## ✗ 3 targets missed: gated\\_mlp on cpu\n\n`l1-miss-rate`, ")
    assert "\n\n`python benchmark/gated_mlp.py --backend cpu -b 8`\n\n" in text
    assert "What to do first" not in text
    assert text.index("### Targets") < text.index("<details><summary>Why, and what to try</summary>")
    assert "Verdicts" not in text
    assert "| **✗ FAIL** | `l1-miss-rate` | &lt; 5 % | 9.0 % (sim) | 9.0 % of the data accesses" in text
    assert text.count("<details>") == text.count("</details>") >= 11
    assert "- **tracemalloc failed**: the workload was killed by SIGKILL" in text


def test_every_row_of_a_table_has_as_many_cells_as_its_head() -> None:
    for document in (judged(), hostile()):
        columns = 0
        for line in run_markdown(document).split("\n"):
            if not line.startswith("|"):
                columns = 0
                continue
            cells = len(re.findall(r"(?<!\\)\|", line)) - 1
            columns = columns or cells
            assert cells == columns, line


def test_markdown_from_outside_is_no_html_no_link_and_no_mention() -> None:
    text = run_markdown(hostile())
    outside_code = re.sub(r"(`+).*?\1", "", text)
    assert "<script>" not in outside_code
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "@everyone" not in outside_code
    assert escape_markdown("see https://evil.example [x](y) **z**") == (
        "see https&#8203;://evil.example \\[x\\](y) \\*\\*z\\*\\*"
    )


@pytest.mark.parametrize(
    ("text", "span"), [("a", "`a`"), ("a`b", "``a`b``"), ("`a", "`` `a ``"), ("a``b`c", "```a``b`c```")]
)
def test_a_code_span_cannot_be_closed_from_inside(text: str, span: str) -> None:
    assert inline_code(text) == span


# ---------------------------------------------------------------- json


def test_json_is_the_published_document() -> None:
    for document in (judged(), hostile(), documents.empty()):
        data = json.loads(json_report.run(document))
        jsonschema.Draft202012Validator(schemas.run()).validate(data)
        assert data["schema"] == "profkit.run/6"


# ---------------------------------------------------------------- plan and checks


def test_a_plan_names_passes_counters_cost_and_what_is_skipped() -> None:
    skipped = PassPlan(
        "trace", "perf", skipped=message("perf was refused"), fix="sysctl kernel.perf_event_paranoid=1"
    )
    plan = Plan("cpu", "standard", (*documents.plan().passes[:2], skipped, documents.plan().passes[4]))
    text = text_of(plan_view.view(plan))
    assert "Plan: cpu, depth standard. Nothing was run." in text
    assert "+ timing\n  3 runs of the workload; about 3.2 times as long as one normal run" in text
    assert "- trace (perf)\n  skipped: perf was refused" in text
    assert "fix: sysctl kernel.perf_event_paranoid=1" in text
    assert "counters: Ir, Dr, Dw" in text
    assert "In all\n  3 passes, 1 skipped: about 65 times as long as one normal run." in text
    assert max(len(line) for line in text.split("\n")) <= 80


CHECKS = (
    Check("perf", "limited", "no hardware counters " * 6, "choose a machine with a PMU", version="6.1"),
    Check("valgrind", "ok", "ran a program in 0.6 s", version="3.19.0"),
    Check("torch", "missing", "not installed", "pip install torch"),
    Check(HOSTILE, "refused", HOSTILE, HOSTILE),
)


def test_checks_have_state_detail_version_and_fix() -> None:
    text = text_of(plan_view.checks_view(CHECKS))
    for part in ("~ LIMITED", "✓ OK", "✗ MISSING", "✗ REFUSED", "3.19.0", "fix: pip install torch"):
        assert part in text
    assert text.startswith("1 OK, 1 LIMITED, 1 MISSING, 1 REFUSED; 3 fixes below.\n")
    assert max(len(line) for line in text.split("\n")) <= 80
    assert "\x1b" not in text


# ---------------------------------------------------------------- any text


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=200))
def test_any_text_renders_and_stays_within_the_screen(text: str) -> None:
    from rich.cells import cell_len

    document = replace(
        documents.empty(),
        name=text,
        workload=Workload((text,), text, text),
        summaries=(
            Summary("memory", (unavailable_reading("memory.python_peak", RUN, message(text or "x"), text),)),
        ),
        notes=(Fact.message(text),),
    )
    for line in run_text(document, color=False).split("\n"):
        assert cell_len(line) <= 80
    run_markdown(document)
    json.loads(json_report.run(document))


def test_unknown_verdicts_of_one_cause_are_told_in_one_line() -> None:
    cause = "the counters pass was not requested"
    why = Fact.of("not-known", message(cause), metric="ipc")
    targets = ("ipc", "l1-miss-rate", "roofline")
    verdicts = (verdict("unknown", name, metric="ipc", reason=why) for name in targets)
    other = verdict("unknown", "no-leak", metric="ipc", reason=message("growth not known: too few"))
    text = run_text(replace(judged(), verdicts=(*verdicts, other)), color=False)
    assert text.count(cause) == 1
    assert "ipc, l1-miss-rate, roofline" in text
    assert "too few" in text


def test_on_a_short_screen_further_insights_are_their_title_and_place() -> None:
    found = tuple(
        Insight("hot-spot", f"title {n}", f"because {n}", f"change {n}", Place(file="/w/a.py", line=n))
        for n in (1, 2)
    )
    document = replace(documents.empty(), insights=found)
    short, whole = (run_text(document, FOLDER, color=False, details=details) for details in (False, True))
    assert "because 1" in short
    assert "because 2" not in short
    assert "a.py:2" in short
    assert "because 2" in whole
    assert "because 2" in run_markdown(document)
