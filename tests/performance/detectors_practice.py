"""The detectors against practitioners: each of their regressions must be found, and nothing else.

    python -m tests.performance.detectors_practice DATA

DATA is the folder hana/small_2021 of github.com/SAP/performance-regression-data-set (CC-BY-4.0: Bach, Lv, Le), which
is no part of this project: 25 series of a database with what people said of them. One value per build, the median.
Ends with 1 where a series is judged in another way.
"""

from __future__ import annotations

import csv
import sys
from itertools import groupby
from pathlib import Path
from statistics import median

from profkit.regression.change_points import examine_series
from profkit.regression.detection.rules import rule_for
from tests.regression.detection.nights import every_night, series_of
from tests.regression.detection.scoring import ALARMS

AROUND = 5  # builds


def of_builds(path: Path) -> tuple[list[float], list[int]]:
    """The median of each build's rows, and the number of its first row, from 1 on."""
    with path.open() as file:
        rows = list(enumerate(csv.DictReader(file), 1))
    builds = [list(rows) for _, rows in groupby(rows, key=lambda row: row[1]["GHC"])]
    values = [median(float(row["Measurement"]) for _, row in build) for build in builds]
    return values, [build[0][0] for build in builds]


def main(data: Path) -> int:
    """Print a line for each series."""
    wrong = 0
    with (data / "metadata" / "dataset_details.csv").open() as file:
        judged = list(csv.DictReader(file, delimiter=";"))
    for row in judged:
        values, firsts = of_builds(data / "data" / row["Dataset"])
        found = [change.index for change in examine_series(values).change_points]
        nights = every_night(series_of(values), rule_for("time.median"))
        alarms = [index for index, told in enumerate(nights) if told.code in ALARMS]
        if row["Type"].strip().lower() == "regression":
            bad = next(k for k, first in enumerate(firsts) if first > int(row["Change Point"]))
            right = len(found) == len(alarms) == 1 and abs(found[0] - bad) <= AROUND >= abs(
                alarms[0] - 2 - bad
            )
        else:
            right = found == alarms == []
        wrong += not right
        print(
            f"{row['Dataset']}  {row['Type']:12}  changes {found}  alarms {alarms}{'' if right else '  WRONG'}"
        )
    print(f"{len(judged) - wrong} of {len(judged)} as people judged them")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
