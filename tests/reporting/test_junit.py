"""A run as JUnit XML: what fails, what is skipped, and that every reader can take it."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from profkit.core.types import RunDocument, Verdict, VerdictWord
from profkit.reporting import junit
from profkit.reporting.forges import Case, CaseList
from profkit.reporting.view import View
from tests import documents
from tests.reporting.shown import run_junit as render
from tests.reporting.test_renderers import hostile, judged

# What both published schemas allow: Ant's (windyroad/JUnit-Schema) and Jenkins' (xunit-plugin, junit-10.xsd).
SUITE = {
    "id": r"\d+",
    "package": r"\S+",
    "name": r"\S(.*\S)?",
    "timestamp": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d",
    "hostname": r"\S+",
    "tests": r"\d+",
    "failures": r"\d+",
    "errors": r"\d+",
    "skipped": r"\d+",
    "time": r"\d+\.\d+",
}
CASE = {"classname": r"\S(.*\S)?", "name": r"\S(.*\S)?", "time": r"\d+\.\d+"}
WHY = {"failure": {"message", "type"}, "error": {"message", "type"}, "skipped": {"message"}}


def check_shape(text: str) -> ElementTree.Element:
    """The root of a text that is valid by both schemas."""
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    assert root.attrib == {}
    for number, suite in enumerate(root):
        assert suite.tag == "testsuite"
        _attributes(suite, SUITE)
        assert suite.get("id") == str(number)
        tags = [child.tag for child in suite]
        assert tags == ["properties", *["testcase"] * (len(tags) - 3), "system-out", "system-err"]
        for told in suite[0]:
            assert set(told.attrib) == {"name", "value"}
            assert re.fullmatch(r"\S(.*\S)?", told.attrib["name"])
        cases = suite.findall("testcase")
        for case in cases:
            _attributes(case, CASE)
            assert len(case) <= 1
            for why in case:
                assert set(why.attrib) == WHY[why.tag]
        counted = {
            "tests": "testcase",
            "failures": ".//failure",
            "errors": ".//error",
            "skipped": ".//skipped",
        }
        assert {name: suite.get(name) for name in counted} == {
            name: str(len(suite.findall(path))) for name, path in counted.items()
        }
    return root


def _attributes(node: ElementTree.Element, wanted: dict[str, str]) -> None:
    assert set(node.attrib) == set(wanted)
    assert {name: value for name, value in node.attrib.items() if not re.fullmatch(wanted[name], value)} == {}


def only(document: RunDocument, *verdicts: Verdict) -> RunDocument:
    return replace(document, verdicts=verdicts, passes=(), state="complete")


@pytest.mark.parametrize("strict", [False, True])
def test_any_run_is_valid_by_both_schemas(strict: bool) -> None:
    runs = [judged(), hostile(), documents.empty(), replace(judged(), name=" ", started="rubbish")]
    assert len(check_shape(render(runs, strict=strict))) == len(runs)


@pytest.mark.parametrize(
    ("word", "strict", "tag"),
    [
        ("pass", False, None),
        ("fail", False, "failure"),
        ("unknown", False, "skipped"),
        ("unknown", True, "error"),
        ("not-applicable", True, "skipped"),
    ],
)
def test_a_verdict_is_what_check_would_end_with(word: VerdictWord, strict: bool, tag: str | None) -> None:
    root = check_shape(
        render([only(documents.empty(), documents.verdict(word, "ipc", "try this"))], strict=strict)
    )
    case = root[0].findall("testcase")[0]
    assert [child.tag for child in case] == ([tag] if tag else [])
    if tag is not None:
        assert "because" in case[0].attrib["message"]


def test_passes_have_their_seconds_and_a_failed_one_is_an_error() -> None:
    suite = check_shape(render([judged()]))[0]
    cases = {case.attrib["name"]: case for case in suite.findall("testcase")}
    assert cases["counters (valgrind)"].attrib["time"] == "77.000"
    assert len(cases["counters (valgrind)"]) == 0
    failed = cases["tracemalloc"].find("error")
    assert failed is not None
    assert "fix: use a smaller batch" in (failed.text or "")
    assert float(suite.attrib["time"]) == pytest.approx(sum(p.seconds for p in judged().passes))


def test_a_run_that_did_not_end_well_and_one_that_was_not_judged_are_never_green() -> None:
    failed = replace(only(documents.empty()), state="failed", failure="it exited with 3")
    suites = check_shape(render([failed, only(documents.empty())]))
    assert [suite.attrib["errors"] for suite in suites] == ["1", "0"]
    assert suites[1].attrib["skipped"] == "1"


@pytest.mark.parametrize(
    "name", ["]]>", "a\x00b\x1b[31m", "\ud800", "￾￿", "<script>&'\"", "x" * 4096, "\n\t", "", "日本"]
)
def test_any_name_gives_xml_that_can_be_read_back(name: str) -> None:
    cases = (Case(name, name, "failure", name, name + "\n" + name),)
    suite = CaseList(name, cases, name, 1.0, ((name, name),), name)
    case = check_shape(junit.render([View("", (suite,))]))[0].findall("testcase")[0]
    assert 0 < len(case.attrib["name"]) <= 250


@pytest.mark.parametrize(
    ("started", "stamp"),
    [
        ("2026-11-20T05:47:00+02:00", "2026-11-20T03:47:00"),
        ("2026-11-20T05:47:00Z", "2026-11-20T05:47:00"),
        ("2026-11-20T05:47:00", "2026-11-20T05:47:00"),
        ("9999-12-31T23:59:59-23:00", "1970-01-01T00:00:00"),
        ("", "1970-01-01T00:00:00"),
    ],
)
def test_a_time_stamp_is_utc_without_a_zone(started: str, stamp: str) -> None:
    assert (
        check_shape(junit.render([View("", (CaseList("s", (), started),))]))[0].attrib["timestamp"] == stamp
    )
