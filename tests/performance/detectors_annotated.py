"""The detectors against people: F1, strict precision and recall, and how many quiet series are alarmed.

    python -m tests.performance.detectors_annotated DATA ANNOTATIONS.json [--half dev|test]

DATA is the folder hana/large_2022/data of github.com/SAP/performance-regression-data-set (CC-BY-4.0: Bach, Lv, Le);
ANNOTATIONS.json is rq3/annotations.json of github.com/mtucci/changepoint-performance-regression-study, which carries
no licence: neither is part of this project. One value per `sut_version`, the median; split1 is values 0 to 799, split2
from 750 on. Series with three annotators or more count. F1 is that of TCPDBench (van den Burg and Williams, arXiv
2003.06222) with a margin of 5; strict P is the share of alerts within 5 of anybody's mark, strict R that of places
marked by three people or more, within 5 of one another, that were found. The audit's limits were chosen on dev (md5 of
the id, even) alone.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

from tests.performance.detectors_peers import rules

MARGIN = 5
NAME = re.compile(r"sap_(\d+)(?:_split([12]))?")  # others have steps put in, or are shuffled


@dataclass(frozen=True)
class Judged:
    """One series, and the places that each annotator marked."""

    values: list[float]
    marks: list[set[int]]

    @property
    def anybodys(self) -> set[int]:
        return set().union(*self.marks)

    @property
    def agreed(self) -> list[int]:
        """Places that three people or more marked within the margin, at the median of their marks."""
        marked = sorted((place, who) for who, places in enumerate(self.marks) for place in places)
        found, k = [], 0
        while k < len(marked):
            group = [each for each in marked[k:] if each[0] <= marked[k][0] + MARGIN]
            if len({who for _, who in group}) >= 3:
                found.append(int(median(place for place, _ in group)))
                k += len(group)
            else:
                k += 1
        return found


def load(data: Path, annotations: Path, half: str | None) -> list[Judged]:
    files = {int(path.name.partition("_")[0]): path for path in data.glob("*.csv")}
    judged = []
    for name, marks in json.loads(annotations.read_text()).items():
        match = NAME.fullmatch(name)
        if match is None or len(marks) < 3:
            continue
        part = "test" if int(hashlib.md5(match[1].encode()).hexdigest(), 16) % 2 else "dev"
        if half in (None, part):
            values = by_version(files[int(match[1])])
            values = {"1": values[:800], "2": values[750:]}.get(match[2], values)
            judged.append(Judged(values, [set(places) for places in marks.values()]))
    return judged


def by_version(path: Path) -> list[float]:
    versions: dict[int, list[float]] = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            versions.setdefault(int(row["sut_version"]), []).append(float(row["value"]))
    return [median(versions[version]) for version in sorted(versions)]


def hits(truth: set[int], found: set[int]) -> int:
    """Places of the truth that have a found one within the margin, each found one used once."""
    left, count = set(found), 0
    for place in sorted(truth):
        near = [(abs(place - other), other) for other in left if abs(place - other) <= MARGIN]
        if near:
            left.remove(min(near)[1])
            count += 1
    return count


def f1(series: Judged, found: list[int]) -> float:
    said = {0, *found}
    precision = hits(series.anybodys | {0}, said) / len(said)
    recall = mean(hits(marks | {0}, said) / len(marks | {0}) for marks in series.marks)
    return 2 * precision * recall / (precision + recall)


def near(place: int, others: object) -> bool:
    return any(abs(place - other) <= MARGIN for other in others)  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("annotations", type=Path)
    parser.add_argument("--half", choices=["dev", "test"])
    parser.add_argument("--rule", help="only rules whose name begins so")
    asked = parser.parse_args()
    judged = load(asked.data, asked.annotations, asked.half)
    quiet = [not series.anybodys for series in judged]
    print(f"{len(judged)} series, {sum(quiet)} of them quiet\n")
    print("| rule | F1 | strict P | strict R | quiet series alarmed |\n| --- | --- | --- | --- | --- |")
    for name, rule in {"never": lambda values: [], **rules()}.items():
        if asked.rule and not name.strip().startswith(asked.rule):
            continue
        found = [rule(series.values) for series in judged]
        alerts = [
            near(place, s.anybodys) for s, places in zip(judged, found, strict=True) for place in places
        ]
        agreed = [near(place, places) for s, places in zip(judged, found, strict=True) for place in s.agreed]
        score = mean(f1(s, places) for s, places in zip(judged, found, strict=True))
        alarmed = sum(bool(places) for places, still in zip(found, quiet, strict=True) if still)
        precision = f"{mean(alerts):.3f}" if alerts else "-"
        print(f"| {name.strip()} | {score:.3f} | {precision} | {mean(agreed):.3f} | {alarmed} |", flush=True)


if __name__ == "__main__":
    main()
