"""What a library does below a place: small programs that are sampled and counted, with the finding of each and without."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.analysis.hot_spots import hot_spots
from profkit.analysis.insights import find_insights
from profkit.backends.source_lines import with_source
from profkit.core.types import Hotspot, Insight, Profile, RunDocument
from profkit.profilers.cprofile import read_cprofile
from profkit.profilers.stacks import read_stacks
from profkit.runtime.passes.command import START_FOLDER
from tests import documents


def ran(folder: Path, code: str) -> RunDocument:
    """The document of a program: its stacks, then its calls, each of one run."""
    (folder / "work.py").write_text(textwrap.dedent(code))
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PROFKIT"))}
    sampled = env | {"PYTHONPATH": str(START_FOLDER), "PROFKIT_STACKS": str(folder / "stacks.jsonl")}
    counted = [sys.executable, "-m", "cProfile", "-o", "calls.prof", "work.py"]
    for words, more in (([sys.executable, "work.py"], sampled), (counted, env)):
        subprocess.run(words, cwd=folder, env=more, check=True, capture_output=True, timeout=60)
    stacks, calls = read_stacks(folder / "stacks.jsonl"), read_cprofile(folder / "calls.prof")
    document = documents.empty()
    lines = with_source(stacks, replace(document.workload, folder=str(folder)))
    assert lines is not None
    document = replace(document, sampled=(lines,), profiles=(*stacks.profiles, *calls.profiles))
    return replace(document, hot_spots=hot_spots(document))


def findings(folder: Path, code: str) -> dict[str, Insight]:
    return {one.rule: one for one in find_insights(ran(folder, code)) if one.rule != "hot-spot"}


# ---------------------------------------------------------------- the same again

ROUTES = """
import re
re._MAXCACHE = re._MAXCACHE2 = 30  # of 512: the same with fewer patterns
paths = [f"/shop/{n}/item" for n in range(300)]
for round in range(%s):
    for n in range(%s):
        [re.match(rf"/(shop|cart)/{n}%s/(\\w+)", path) for path in paths[:%s]]
"""
NETWORKS = """
from ipaddress import ip_address, ip_network
names = [f"10.{n // 250}.{n %% 250}.0/24" for n in range(%s)]
for n in range(%s):
    [ip_network(name) for name in names]
"""
FOLDERS = """
import os, tempfile
with tempfile.TemporaryDirectory() as root:
    inner = os.path.join(root, "a", "b", "c", "d")
    os.makedirs(inner)
    for n in range(9000):
        os.path.realpath(os.path.join(inner, str(n %% %s)))
"""


@pytest.mark.parametrize(
    ("code", "line", "said"),
    [
        (
            ROUTES % (40, 60, "", 1),
            7,
            "Regular expressions are compiled again and again from the same text: 2,4",
        ),
        (NETWORKS % (30, 2000), 5, "Networks are parsed again and again from the same text: 60,000 times"),
        (FOLDERS % 40, 7, "Paths are resolved again and again from the same text: 9,0"),
    ],
)
def test_what_a_library_computes_again_from_the_same_arguments_is_said(
    tmp_path: Path, code: str, line: int, said: str
) -> None:
    found = findings(tmp_path, code)["repeated-work"]
    assert found.where.line == line
    assert found.title.startswith(said)
    assert found.gain is not None
    assert found.gain.at_most > 0.3


@pytest.mark.parametrize(
    "code",
    [
        ROUTES % (8, 20, "", 300),  # re finds each of the twenty in its cache
        ROUTES % (40, 60, "{round}", 1),  # each pattern is another one
        NETWORKS % (30_000, 1),  # each network as well
        FOLDERS % 9000,
    ],
)
def test_what_is_computed_once_for_each_argument_is_not_said_to_be_repeated(
    tmp_path: Path, code: str
) -> None:
    assert "repeated-work" not in findings(tmp_path, code)
