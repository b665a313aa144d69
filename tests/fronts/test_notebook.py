"""The magics in a real IPython, and in a real Jupyter server with a real browser; where these are installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import browser as browsers
from tests import jupyter
from tests.conftest import ROOT

DEFINE = """import time
def work(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total"""
CELLS = [
    "%load_ext profkit",
    DEFINE,
    "%%profkit\ncount = work(3_000_000)\ntime.sleep(0.6)\ncount",
    "x = 1\n\n%profkit time.sleep(0.6)",
    "%%profkit\nwork(2_000_000)\nraise ValueError('no')",
    "%%profkit\nx = = 2",
    "%%profkit\nawait work(1)",
    "%profkit",
    "%profkit sum(i * i for i in range(3_000_000))",
    "%%profkit\nkept = bytearray(80_000_000)\ntime.sleep(0.2)",
    "import profkit\n@profkit.profile\ndef step():\n    work(500_000)\nfor _ in range(6): step()",
    "import profkit\nwith profkit.profile(show=False) as run:\n    work(3_000_000)\nrun.insights[0].where.file",
]
SESSION = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
for cell in {cells!r}:
    print("====", flush=True)
    print("-> ok" if shell.run_cell(cell, store_history=True).success else "-> failed", flush=True)
"""


@pytest.mark.timed
def test_in_ipython_a_cell_is_a_file_and_what_goes_wrong_is_said_in_a_line() -> None:
    pytest.importorskip("IPython", reason="IPython is not installed (pip install 'profkit[notebook]')")
    done = subprocess.run(
        [sys.executable, "-c", SESSION.format(cells=CELLS)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "IPYTHONDIR": os.environ["TMPDIR"]},
        timeout=120,
    )
    loaded, defined, cell, line, raised, wrong, awaiting, empty, single, kept, steps, block = (
        done.stdout.split("====\n")[1:]
    )
    assert loaded == defined == "-> ok\n"
    assert "cell [3] on cpu" in cell
    assert re.search(r"top level cell \[3\]:3 .*sleeps", cell)
    assert "work cell [2]:5" in cell
    assert "Out[3]: 5999999" in cell
    assert re.search(r"top level cell \[4\]:3 .*sleeps", line)
    assert "✗ Failed: ValueError: no" in raised
    assert "Cell In[5], line 3" in raised
    assert "profkit/fronts" not in raised
    assert wrong.startswith("UsageError: cell [6]:2: ")
    assert "UsageError: a cell that awaits" in awaiting
    assert "UsageError: %profkit STATEMENT" in empty
    assert "runs: sum(i * i for i in range(3_000_000))" in " ".join(single.split())
    for page in (cell, line, single, kept):
        assert "run_line_magic" not in page
        assert "run_cell_magic" not in page
        assert "rmtree" not in page  # what the cell before has left
    first, took = kept.splitlines()[:2]
    assert first.startswith("cell [10] on cpu")
    added = re.fullmatch(r"Took +[\d.]+ m?s; memory \+([\d.]+) MiB at its end, peak \d.*", took)
    assert added is not None
    assert 70 < float(added[1]) < 90
    assert steps.count("step on cpu") == 1
    assert " in 6 calls, " in steps
    assert "cell [2]" in block
    assert all(part.endswith("-> failed\n") for part in (raised, wrong, awaiting, empty))


def test_a_finding_of_a_cell_knows_what_its_variables_hold() -> None:
    pytest.importorskip("IPython", reason="IPython is not installed (pip install 'profkit[notebook]')")
    search = "%%profkit\nseen = []\nfor n in range(9000):\n    if n not in seen:\n        seen.append(n)"
    done = subprocess.run(
        [sys.executable, "-c", SESSION.format(cells=["%load_ext profkit", search])],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "IPYTHONDIR": os.environ["TMPDIR"]},
        check=False,
    )
    assert re.search(r"seen is a list of \d,\d{3}: do not search it each time", done.stdout), done.stdout


@pytest.mark.thorough
@pytest.mark.timed
def test_in_jupyter_the_page_stands_below_the_cell(tmp_path: Path, browser: Any) -> None:
    if (reason := jupyter.why_not()) is not None:
        pytest.skip(reason)
    if (reason := browsers.why_not()) is not None:
        pytest.skip(reason)
    jupyter.write_notebook(tmp_path / "cells.ipynb", CELLS[:3])
    with jupyter.server(tmp_path) as address:
        page = browser.new_page(viewport={"width": 1180, "height": 1130}, color_scheme="null")
        page.goto(f"{address}/lab/tree/cells.ipynb")
        jupyter.run_all(page)
        answer = page.frame_locator("iframe[srcdoc]").locator("#to-do, main").first
        answer.wait_for(timeout=60_000)
        text = answer.inner_text()
        assert "cell [2]:5" in text
        assert "cell [3]:3" in text
        assert page.locator("iframe[srcdoc]").bounding_box()["height"] > 300
        # The frame cannot look at the notebook, whose colours are not those of the system.
        paper = "getComputedStyle(document.documentElement).getPropertyValue('--paper')"
        frame = page.frames[1]
        assert frame.evaluate(paper) == "#fdfdfb"
        page.evaluate(
            "() => window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})"
        )
        page.wait_for_selector("[data-jp-theme-light=false]", state="attached")
        frame.wait_for_function(f"{paper} === '#161618'")
        page.close()
