"""The table of formulas in docs/metrics.md is that of the code: `python -m tests.docs.test_least_work` prints it."""

from __future__ import annotations

import itertools

from profkit.analysis.necessary_work.formulas import TABLE
from profkit.analysis.necessary_work.work import WorkFormula
from tests.conftest import ROOT

HEAD = "| what | operations | FLOP | bytes: elements in their type | by |"


def table() -> list[str]:
    """Return the rows; operations with the same formula stand in one."""
    alike: dict[tuple[str, str, str], list[WorkFormula]] = {}
    for one in TABLE:
        alike.setdefault((one.flop, one.bytes, one.source), []).append(one)
    rows = [HEAD, "| --- | --- | --- | --- | --- |"]
    for (flop, moved, source), formulas in alike.items():
        title = "; ".join(dict.fromkeys(one.title for one in formulas))
        names = " ".join(f"`{name}`" for one in formulas for name in one.names)
        rows.append(f"| {title} | {names} | {flop} | {moved} | {source} |")
    return rows


def test_the_documented_formulas_are_those_of_the_code() -> None:
    lines = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8").splitlines()
    below = lines[lines.index(HEAD) :]
    assert list(itertools.takewhile(lambda line: line.startswith("|"), below)) == table()


if __name__ == "__main__":
    print("\n".join(table()))
