"""What GitHub, GitLab and a badge get of a comparison: valid by their schemas, and of what became worse alone."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from profkit.core.types import ComparedWorkload, Scope
from profkit.reporting import junit
from profkit.reporting.forges import badge, code_quality, sarif
from profkit.reporting.forges.ci import annotation_lines
from profkit.reporting.forges.files import FILES, write_comparison, write_suite
from profkit.reporting.forges.regressions import NO_METRIC, regressions
from profkit.reporting.forges.step import append_summary
from profkit.reporting.markdown import STEP_SUMMARY
from profkit.reporting.views.comparison import view
from profkit.reporting.views.comparison.suite import view as suite_view
from tests import schemas
from tests.conftest import ROOT
from tests.paired_documents import LINE, compared, suite, workload
from tests.reporting.test_junit import check_shape

HOSTILE = '[x](http://b) "quoted" \x1b[31m <script>\n::error::y \ud800'


@cache
def validator() -> Any:
    schema = json.loads((ROOT / "tests" / "data" / "sarif" / "sarif-2.1.0.json").read_text())
    return jsonschema.Draft202012Validator(schema)


def results(text: str) -> list[dict[str, Any]]:
    document = json.loads(text)
    validator().validate(document)
    (run,) = document["runs"]
    found: list[dict[str, Any]] = run["results"]
    for result in found:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    return found


def test_the_schema_refuses_what_is_no_sarif() -> None:
    document = json.loads(sarif.render(regressions([("", compared(blamed=(LINE,)))])))
    document["runs"][0]["results"][0]["level"] = "awful"
    with pytest.raises(jsonschema.ValidationError):
        validator().validate(document)


def test_a_regression_is_an_error_at_the_blamed_line_with_its_numbers() -> None:
    other = replace(LINE, path="src/a b#ü.py", line=3)
    (result,) = results(sarif.render(regressions([("parse", compared(blamed=(LINE, other)))])))
    assert (result["ruleId"], result["level"]) == ("time.median", "error")
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "src/parse.py"}, "region": {"startLine": 12}}
    assert result["message"]["text"].startswith("parse: time.median +1")
    assert "src/parse.py:12 in parse, commit 1a2b3c4" in result["message"]["text"]
    (related,) = result["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "src/a%20b%23%C3%BC.py"


def test_without_a_blamed_line_the_first_changed_file_is_the_place_and_without_that_there_is_none() -> None:
    (result,) = results(sarif.render(regressions([("", compared())], "src/main.c")))
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "src/main.c"}, "region": {"startLine": 1}}
    (result,) = results(sarif.render(regressions([("", compared())])))
    assert result["locations"] == []
    assert json.loads(code_quality.render(regressions([("", compared())]))) == []


@pytest.mark.parametrize(("by", "noise"), [(0.0, 0.001), (-0.2, 0.005), (0.02, 0.02)])
def test_what_is_the_same_better_or_open_is_no_result(by: float, noise: float) -> None:
    found = regressions([("a", compared(by, noise, blamed=(LINE,)))], "src/main.c")
    assert results(sarif.render(found)) == []
    assert json.loads(code_quality.render(found)) == []


def test_an_outcome_without_a_metric_of_its_own_is_a_result_too() -> None:
    found = replace(compared(), changes=())
    (one,) = regressions([("", found)], "a.c")
    assert (one.metric, one.message.split("\n")[0]) == (NO_METRIC, found.reason)
    results(sarif.render([one]))


def test_the_fingerprint_stays_where_numbers_and_lines_move_and_tells_workloads_and_regions_apart() -> None:
    def prints(name: str, by: float, line: int, scope: Scope) -> str:
        found = compared(by, blamed=(replace(LINE, line=line),), scope=scope)
        (one,) = regressions([(name, found)])
        return one.fingerprint

    region = Scope("region", "step")
    assert prints("a", 0.1, 3, region) == prints("a", 0.2, 9, region)
    assert (
        len({prints("a", 0.1, 3, region), prints("b", 0.1, 3, region), prints("a", 0.1, 3, Scope("run"))})
        == 3
    )


def test_a_hostile_name_is_no_link_no_control_character_and_no_broken_document() -> None:
    line = replace(
        LINE, path=HOSTILE, text=HOSTILE, subject=HOSTILE, function=HOSTILE, reason=HOSTILE, line=-3
    )
    found = regressions([(HOSTILE, compared(blamed=(line, line)))], HOSTILE)
    text = sarif.render(found)
    text.encode()
    (result,) = results(text)
    assert "](" not in result["message"]["text"]
    assert "\x1b" not in result["message"]["text"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 1
    code_quality.render(found).encode()
    badge.render("regressed", HOSTILE, HOSTILE).encode()


def test_code_quality_has_the_fields_that_gitlab_reads() -> None:
    (row,) = json.loads(code_quality.render(regressions([("parse", compared(blamed=(LINE,)))])))
    assert set(row) == {"description", "check_name", "fingerprint", "severity", "location"}
    assert row["severity"] in {"info", "minor", "major", "critical", "blocker"}
    assert row["location"] == {"path": "src/parse.py", "lines": {"begin": 12}}
    assert "\n" not in row["description"]


def test_an_annotation_stands_beside_the_blamed_line() -> None:
    (line,) = annotation_lines(view(compared(blamed=(LINE,)))).splitlines()
    assert line.startswith("::error file=src/parse.py,line=12,title=worse::time.median +1")
    (line,) = annotation_lines(view(compared())).splitlines()
    assert line.startswith("::error title=worse::")
    assert annotation_lines(view(compared(0.0, 0.001))) == ""
    whole = suite(workload("a", 0.12), ComparedWorkload("b", "failed", None, "it exited with 1"))
    assert [row.split("::")[1] for row in annotation_lines(suite_view(whole)).splitlines()] == [
        "error title=a%3A worse",
        "error title=b%3A failed",
    ]


def test_junit_has_a_suite_for_each_workload_which_fails_as_its_outcome_says() -> None:
    whole = suite(
        workload("slow", 0.12),
        workload("even"),
        workload("open", 0.02, 0.02),
        ComparedWorkload("broken", "failed", None, "it exited with 1", "mend it"),
        ComparedWorkload("fresh", "new", None, "main has no fresh.py"),
    )
    for strict, open_word in ((False, "skipped"), (True, "error")):
        root = check_shape(junit.render([suite_view(whole)], strict=strict))
        words = {
            part.attrib["name"]: [child.tag for case in part.findall("testcase") for child in case]
            for part in root
        }
        assert words["slow"] == ["failure"]
        assert words["even"] == []
        assert words["open"] == [open_word]
        assert words["broken"] == ["error"]
        assert words["fresh"] == ["skipped"]


def test_a_badge_has_the_word_the_size_and_whose_it_is(tmp_path: Path) -> None:
    assert write_suite(tmp_path, suite(workload("parse", 0.12), workload("b"))) == ()
    made = json.loads((tmp_path / "badge.json").read_text())
    assert (made["schemaVersion"], made["label"], made["color"]) == (1, "performance", "red")
    assert made["message"].startswith("worse +1")
    assert made["message"].endswith(" % (parse)")
    assert write_comparison(tmp_path, compared(0.0, 0.001)) == ()
    assert json.loads((tmp_path / "badge.json").read_text())["message"] == "same"


def test_the_folder_has_all_files_and_its_documents_are_of_their_schemas(tmp_path: Path) -> None:
    one, all_of_them = tmp_path / "one", tmp_path / "all"
    one.mkdir()
    all_of_them.mkdir()
    assert write_comparison(one, compared(blamed=(LINE,))) == ()
    assert write_suite(all_of_them, suite(workload("a", 0.12), workload("b"))) == ()
    for folder, schema in (
        (one, schemas.comparison()),
        (all_of_them, schemas.comparisons()),
    ):
        assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
        document = json.loads((folder / "comparison.json").read_text())
        jsonschema.Draft202012Validator(schema).validate(document)
        results((folder / "results.sarif").read_text())
        check_shape((folder / "junit.xml").read_text())
        assert (folder / "report.md").read_text().startswith("## ✗ WORSE: ")


def test_a_file_that_cannot_be_written_is_told_and_costs_no_other(tmp_path: Path) -> None:
    (tmp_path / "results.sarif").mkdir()
    (fault,) = write_comparison(tmp_path, compared())
    assert "results.sarif" in fault
    assert (tmp_path / "badge.json").is_file()


def test_the_summary_of_a_step_is_appended_and_never_longer_than_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "summary.md"
    assert append_summary(path, view(compared())) is None
    first = path.read_text()
    assert append_summary(path, view(compared(0.0, 0.001))) is None
    assert path.read_text().startswith(first)
    assert "✓ SAME" in path.read_text()
    path.write_text("x" * (STEP_SUMMARY - 9000))
    many = replace(compared(), notes=tuple(f"note {n} " + "y" * 90 for n in range(5000)))
    assert append_summary(path, view(many)) is None
    assert path.stat().st_size <= STEP_SUMMARY


def test_a_summary_that_cannot_be_written_is_a_reason(tmp_path: Path) -> None:
    assert "cannot write" in (append_summary(tmp_path, view(compared())) or "")
