"""The pages that the pictures of docs/ are taken of: recorded runs of GPUs, and small real runs that are made here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from profkit.core.types import CaseResult, SweepDocument
from profkit.regression.history import open_history
from profkit.regression.trends import gating_metrics, trends_of
from profkit.reporting.html.page import render
from profkit.reporting.site import prepare_folder, site_page, write_site
from profkit.reporting.view import View
from profkit.reporting.views import run
from profkit.reporting.views.kernels import sweep
from profkit.reporting.views.run_account import account_section
from tests import jupyter, sweep_twins
from tests.answers.gpu.recordings import RECORDINGS
from tests.answers.trial import recorded_document, truth_set
from tests.cli_runner import ENVIRONMENT, PROFKIT
from tests.conftest import ROOT
from tests.git_repository import git
from tests.reporting import site_histories

PROGRAMS = Path(__file__).parent / "programs"
# What a step looks like that is near its limits, waits for its host, moves too much, or computes in a slow type. None
# is of a recording whose kernels were cut off while its program still began.
BARS = (
    "fp32_training", "odd_vocabulary", "adam_each", "item_each", "transpose", "palette", "graph_heat", "plasma_push",
    "storyteller", "few_blocks",
)  # fmt: skip
SUITE = """version: 1
name: tables
workloads:
  - {name: parse, command: [python, parse.py]}
  - {name: render, command: [python, render.py]}
pairs: {sampling: 0.5}
"""
NOTEBOOK = (
    "%load_ext profkit",
    """import time
def work(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total""",
    "%%profkit\ncount = work(9_000_000)\ntime.sleep(0.4)\ncount",
)
COMMENT = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; font: 14px/1.5 "DejaVu Sans", sans-serif; color: #1f2328; background: #fff }}
article {{ margin: 20px; padding: 8px 16px; border: 1px solid #d1d9e0; border-radius: 6px }}
h2 {{ padding-bottom: .3em; border-bottom: 1px solid #d1d9e0 }}
table {{ border-collapse: collapse }} th, td {{ padding: 6px 13px; border: 1px solid #d1d9e0 }}
code {{ padding: .2em .4em; background: #eff1f3; border-radius: 6px }}
</style><article>{}</article>"""


class NotHere(Exception):
    """This machine lacks what a page needs; says what."""


@dataclass
class Pages:
    """The pages, each made when it is first asked for, in one folder; `stop` ends what serves them."""

    folder: Path
    stop: ExitStack
    made: dict[str, str] = field(default_factory=dict)

    def of(self, kind: str) -> str:
        """Return the address of a page; raise `NotHere` where what it needs is missing."""
        if kind not in self.made:
            self.made[kind] = MAKERS[kind](self)
        return self.made[kind]

    @cached_property
    def repository(self) -> Path:
        """Two versions of a small repository, the second of which parses slower, and its nights."""
        folder = self.folder / "tables"
        folder.mkdir()
        for name in ("parse.py", "render.py"):
            shutil.copy(PROGRAMS / name, folder)
        (folder / "nightly.yaml").write_text(SUITE)
        (folder / ".gitignore").write_text("reports/\n__pycache__/\n")
        git(folder, "init", "-q", "-b", "main")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "Parse tables, and write them as a page")
        profkit("nightly", "nightly.yaml", "--night", "1", "--quiet", cwd=folder)
        change(folder / "parse.py", 'line.split(",")', 're.split(r",\\s*", line)')
        change(folder / "parse.py", "import profkit\n", "import re\n\nimport profkit\n")
        change(folder / "render.py", "cell", "number")
        git(folder, "commit", "-qam", "Allow blanks after a comma")
        return folder

    @cached_property
    def recorded(self) -> Mapping[str, Any]:
        """The documents of the recordings with an account."""
        truths = truth_set(gpu=True)
        return {name: recorded_document(truths, name, RECORDINGS / name) for name in BARS}

    def write(self, name: str, text: str) -> str:
        """Write a page of that name; its address."""
        path = self.folder / f"{name}.html"
        path.write_text(text, encoding="utf-8")
        return path.as_uri()

    def bars(self, name: str, title: str, shown: tuple[str, ...]) -> str:
        """Write a page with the bars of several recordings."""
        sections = []
        for one in shown:
            section = account_section(self.recorded[one])
            assert section is not None
            sections.append(replace(section, title=one, anchor=f"of-{one}"))
        return self.write(name, render(View(title, tuple(sections)), inline=True))

    def profiled(self, program: str) -> str:
        """Profile one of the programs here, in a folder of its own; the address of its page."""
        folder = self.folder / program
        folder.mkdir()
        shutil.copy(PROGRAMS / f"{program}.py", folder)
        # Room for each pass, also where other programs take the processors.
        profkit("profile", "--backend", "cpu", "--budget", "60", "--", "python", f"{program}.py", cwd=folder)
        (page,) = folder.glob("reports/*/report.html")
        return page.as_uri()


def profkit(*words: str, cwd: Path) -> None:
    """Run a command line; an exit code of a regression is as good as 0."""
    # `python` is what a reader would type; it is the one that runs this.
    path = os.pathsep.join((str(Path(sys.executable).parent), ENVIRONMENT["PATH"]))
    environment = {**ENVIRONMENT, "PATH": path, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*PROFKIT, *words], cwd=cwd, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"profkit {' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:]}")


def change(path: Path, old: str, new: str) -> None:
    """Replace a text of a file, which must be there."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def recording(name: str) -> Callable[[Pages], str]:
    """Return what writes the page of one recording of a GPU."""
    return lambda pages: pages.write(name, render(run.view(pages.recorded[name])))


def night_page(pages: Pages) -> str:
    """The second night of the repository."""
    profkit("nightly", "nightly.yaml", "--night", "2", "--quiet", cwd=pages.repository)
    return (pages.repository / "reports" / "nights" / "2" / "report.html").as_uri()


def comment_page(pages: Pages) -> str:
    """The comment on a pull request of the repository's second version, as a forge shows its Markdown."""
    try:
        import markdown
    except ImportError:
        raise NotHere("markdown is not installed (./setup.sh --dev)") from None
    profkit(
        "compare", "--suite", "nightly.yaml", "--base", "HEAD^1", "--head", "HEAD", "--quiet", "--output",
        "reports/compared", cwd=pages.repository,
    )  # fmt: skip
    text = (pages.repository / "reports" / "compared" / "report.md").read_text()
    body = markdown.markdown(text.replace("<details>", '<details markdown="1">'), extensions=["extra"])
    return pages.write("pull-request", COMMENT.format(body))


def sweep_page(pages: Pages) -> str:
    """The default grid, as it was measured on an H200 (tests/data/sweeps)."""
    results = tuple(
        CaseResult(
            point, name, "measured", median=seconds, half_width=half, cache="cold", clock="cuda-events"
        )
        for (point, name), (seconds, half) in sweep_twins.measured()["a1"].items()
    )
    document = SweepDocument(
        "2026-11-20T00:00:00+00:00",
        "NVIDIA H200",
        results,
        versions={"torch": "2.11.0", "triton": "3.6.0"},
        planned=len(results),
        complete=True,
    )
    return pages.write("sweep", render(sweep.view(document, Path("reports/sweep"))))


def site_page_of_made_up_runs(pages: Pages) -> str:
    """Half a year of a scripted history, without the workloads whose names attack."""
    path = pages.folder / "history.sqlite"
    odd = {site_histories.HOSTILE, site_histories.UNICODE}
    with open_history(path) as history:
        for entry in site_histories.entries():
            if entry.workload not in odd:
                history.add(entry)
    with open_history(path, read_only=True) as store:
        page = site_page(trends_of(store, ("*:*",)), store.entries(), gating_metrics())
    write_site(folder := prepare_folder(pages.folder / "site"), page)
    return (folder / "index.html").as_uri()


def notebook_page(pages: Pages) -> str:
    """A notebook in JupyterLab, whose cells did not run yet."""
    if (reason := jupyter.why_not()) is not None:
        raise NotHere(reason)
    folder = pages.folder / "notebook"
    folder.mkdir()
    jupyter.write_notebook(folder / "cells.ipynb", NOTEBOOK)
    address = pages.stop.enter_context(jupyter.server(folder))
    return f"{address}/lab/tree/cells.ipynb"


HALF = len(BARS) // 2
MAKERS: Mapping[str, Callable[[Pages], str]] = {
    "odd_vocabulary": recording("odd_vocabulary"),
    "item_each": recording("item_each"),
    "bars": lambda pages: pages.bars("bars", "Five steps", BARS[:HALF]),
    "more-bars": lambda pages: pages.bars("more-bars", "Five more", BARS[HALF:]),
    "cpu": lambda pages: pages.profiled("orders"),
    "memory": lambda pages: pages.profiled("grow"),
    "night": night_page,
    "sweep": sweep_page,
    "overview": site_page_of_made_up_runs,
    "pull-request": comment_page,
    "notebook": notebook_page,
}
