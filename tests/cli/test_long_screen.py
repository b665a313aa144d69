"""What one sees of a result that is longer than the terminal: its end."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace

import pytest

from profkit.cli.options import OutputFormat, print_document
from profkit.core.types import Gain, Insight, Place
from tests import documents

FINDING = Insight(
    "linear-search",
    "Use a set",
    "80 % of the time",
    "set(found)",
    Place(file="/app/work.py", line=9, function="look"),
    Gain(0.8, "the run time", ""),
)


def shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, lines: int, terminal: bool
) -> list[str]:
    document = replace(documents.empty(), insights=(FINDING,))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *_: os.terminal_size((80, lines)))
    print_document(document, OutputFormat.terminal)
    return capsys.readouterr().out.rstrip("\n").split("\n")


def test_a_text_that_is_longer_than_the_terminal_ends_with_the_first_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    last = shown(monkeypatch, capsys, lines=5, terminal=True)[-1]
    assert last == "What to do first: Use a set (/app/work.py:9, 80 %)"


@pytest.mark.parametrize(("lines", "terminal"), [(5, False), (500, True)])
def test_a_file_and_a_text_that_fits_have_the_finding_once(
    lines: int, terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "\n".join(shown(monkeypatch, capsys, lines=lines, terminal=terminal))
    assert text.count("Use a set") == 1
