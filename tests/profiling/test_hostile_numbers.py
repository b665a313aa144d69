"""Numbers that nobody measures: each reader refuses them, leaves them out, or bears them, and none fails on one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.run_folder import run_to_json
from profkit.profiling.summarize import summarize_report
from tests import gpu_documents
from tests.conftest import ROOT
from tests.spoken import spoken_lines

DATA = ROOT / "tests" / "data"
ENDLESS = 10**400


def _put(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_totals_and_calls_of_callgrind_may_have_any_number_of_digits(tmp_path: Path) -> None:
    lines = (DATA / "valgrind" / "kernels.l3.callgrind").read_text().splitlines()
    changed = [
        f"totals: {ENDLESS}"
        if line.startswith(("summary:", "totals:"))
        else f"calls={ENDLESS} 0"
        if line.startswith("calls=")
        else line
        for line in lines
    ]
    document = summarize_report(_put(tmp_path, "out.callgrind", "\n".join(changed) + "\n"))
    assert any("may be damaged" in note for note in spoken_lines(document.notes))
    assert all(spot.calls is None or spot.calls < 1 << 63 for p in document.profiles for spot in p.hotspots)


@pytest.mark.parametrize("count", [ENDLESS, 1 << 64])
def test_a_run_with_a_count_without_end_is_refused_with_its_place(tmp_path: Path, count: int) -> None:
    body = run_to_json(gpu_documents.of_trace())
    body["trace"]["kernels"][0]["launches"] = count  # type: ignore[index,call-overload]
    with pytest.raises(
        UnreadableReport, match=r"trace.kernels\[0\].launches is .*, not a whole number of 64 bits"
    ):
        summarize_report(_put(tmp_path, "run.json", json.dumps(body)))


@pytest.mark.parametrize("rows", [[5, 5, 1], [-5, 5, 3], [1]])
def test_a_run_whose_numbers_contradict_each_other_is_refused(rows: list[int], tmp_path: Path) -> None:
    body = run_to_json(gpu_documents.of_trace())
    line = {"file": "a.py", "line": 3, "kernel_seconds": 1.0, "rows": rows}
    body["trace"]["lines"] = [line]  # type: ignore[index,call-overload]
    with pytest.raises(UnreadableReport, match="that cannot be used in a calculation"):
        summarize_report(_put(tmp_path, "run.json", json.dumps(body)))
