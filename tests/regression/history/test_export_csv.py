"""What a spreadsheet makes of an exported table: text, and never a formula of a stranger's."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from profkit.kernels.evaluation.outputs import _csv
from profkit.regression.history.export import COLUMNS, _write_csv

FORMULAS = ('=HYPERLINK("http://a/"&A1)', "+1", "-1+1", "@SUM(A1)", "\t=1", " =1")


@pytest.mark.parametrize("name", FORMULAS)
def test_a_name_that_is_a_formula_is_a_text_in_csv(tmp_path: Path, name: str) -> None:
    row = {**dict.fromkeys(COLUMNS), "workload": name, "value": -1.5, "samples": []}
    assert _write_csv([tuple(row.values())], tmp_path / "all.csv") == 1
    with (tmp_path / "all.csv").open(encoding="utf-8", newline="") as file:
        (read,) = csv.DictReader(file)
    assert (read["workload"], read["value"]) == (f"'{name}", "-1.5")
    (operator,) = csv.DictReader(io.StringIO(_csv([{"op_name": name, "test_type": "neither"}], ())))
    assert operator["operator"] == f"'{name}"
