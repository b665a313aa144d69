"""The files, annotations and step summary that a forge gets of a comparison."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema

from profkit.core.types import ComparedWorkload
from profkit.reporting import json as json_report
from profkit.reporting import junit
from profkit.reporting.forges import annotation_lines, append_summary
from profkit.reporting.markdown import STEP_SUMMARY
from profkit.reporting.report_files import COMPARISON, write_comparison
from profkit.reporting.views.comparison.view import comment, suite_view, view
from tests import schemas
from tests.paired_documents import LINE, compared, said, suite, workload
from tests.reporting.test_junit import check_shape
from tests.spoken import message


def test_an_annotation_stands_beside_the_blamed_line() -> None:
    (line,) = annotation_lines(view(compared(blamed=(LINE,)))).splitlines()
    assert line.startswith("::error file=src/parse.py,line=12,title=worse::time.median +1")
    (line,) = annotation_lines(view(compared())).splitlines()
    assert line.startswith("::error title=worse::")
    assert annotation_lines(view(compared(0.0, 0.001))) == ""
    whole = suite(workload("a", 0.12), ComparedWorkload("b", "failed", None, message("it exited with 1")))
    assert [row.split("::")[1] for row in annotation_lines(suite_view(whole)).splitlines()] == [
        "error title=a%3A worse",
        "error title=b%3A failed",
    ]


def test_junit_has_a_suite_for_each_workload_which_fails_as_its_outcome_says() -> None:
    whole = suite(
        workload("slow", 0.12),
        workload("even"),
        workload("open", 0.02, 0.02),
        ComparedWorkload("broken", "failed", None, message("it exited with 1"), "mend it"),
        ComparedWorkload("fresh", "new", None, message("main has no fresh.py")),
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


def test_the_folder_has_all_files_and_its_documents_are_of_their_schemas(tmp_path: Path) -> None:
    one, whole = compared(blamed=(LINE,)), suite(workload("a", 0.12), workload("b"))
    for name, schema, document, shown, short in (
        ("one", schemas.comparison(), json_report.document(one), view(one), comment(one)),
        (
            "all",
            schemas.comparisons(),
            json_report.document(whole),
            suite_view(whole),
            suite_view(whole, short=True),
        ),
    ):
        folder = tmp_path / name
        folder.mkdir()
        assert write_comparison(folder, document, shown, short) == ()
        assert sorted(path.name for path in folder.iterdir()) == sorted(COMPARISON)
        written = json.loads((folder / "comparison.json").read_text())
        jsonschema.Draft202012Validator(schema).validate(written)
        check_shape((folder / "junit.xml").read_text())
        assert (folder / "report.md").read_text().startswith("## ✗ WORSE: ")
    (tmp_path / "comparison.json").mkdir()
    (fault,) = write_comparison(tmp_path, "{}", view(one), comment(one))  # and costs no other file
    assert "comparison.json" in fault
    assert (tmp_path / "junit.xml").is_file()


def test_the_summary_of_a_step_is_appended_and_never_longer_than_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "summary.md"
    assert append_summary(path, view(compared())) is None
    first = path.read_text()
    assert append_summary(path, view(compared(0.0, 0.001))) is None
    assert path.read_text().startswith(first)
    assert "✓ SAME" in path.read_text()
    path.write_text("x" * (STEP_SUMMARY - 9000))
    many = replace(compared(), notes=tuple(said(f"note {n} " + "y" * 90) for n in range(5000)))
    assert append_summary(path, view(many)) is None
    assert path.stat().st_size <= STEP_SUMMARY
