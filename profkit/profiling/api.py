"""Provides `profkit.load`: runs and reports for notebooks and scripts, as rows for pandas and polars.

The file is not called `load.py`, since a module of that name would hide the function in `profkit`.
"""

from __future__ import annotations

import html
import os
import shutil
import stat
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TextIO, TypeAlias

from profkit.backends.artifacts import run_files
from profkit.core.errors import writing
from profkit.core.files.names import FileNames
from profkit.core.process import ipython_shell
from profkit.core.run_folder import FILE_NAME, create_run_folder, elsewhere
from profkit.core.types import CodeSpot, Fact, Insight, Reading, RunDocument, Scope
from profkit.profiling.summarize import read_judged
from profkit.reporting.facts import fact_text
from profkit.reporting.plain_text import text_for_others, threshold_text
from profkit.reporting.views.run_text import time_line, worst_first

Cell: TypeAlias = "str | int | float | bool | None"
Row: TypeAlias = "dict[str, Cell]"


ALL_BY_ATTRIBUTES = "save() writes all of them"
FRAME = "width:100%;height:36em;border:0"  # of a page inside a notebook, as CSS
# A frame cannot read the notebook around it. But browsers pass the colour scheme of the surrounding element on to a
# frame, and each notebook sets it: JupyterLab and Notebook, VS Code, Colab.
FRAME_COLOURS = "".join(
    f"{where} .profkit-page{{color-scheme:{colours}}}"
    for colours, where in (
        ("light", "[data-jp-theme-light=true]"),
        ("dark", "[data-jp-theme-light=false]"),
        ("light", ".vscode-light"),
        ("dark", ".vscode-dark"),
        ("light", "html[theme=light]"),
        ("dark", "html[theme=dark]"),
    )
)


@dataclass
class Run:
    """One run, or one report. `document` is all of run.json as typed values; the methods return rows of it.

    Every row is a flat dict and all rows of a method have the same keys in the same order. Times are in seconds
    and values in the unit that their row names; what is not known is None, never 0 or NaN.
    """

    document: RunDocument
    path: Path
    recording: object = field(default=None, repr=False, compare=False)  # keeps a temporary folder there

    @property
    def hot_spots(self) -> tuple[CodeSpot, ...]:
        """Return where the time goes, the largest share first.

        Shares are of the wall time (0 to 1) and add up to 1.
        """
        return self.document.hot_spots

    @property
    def insights(self) -> tuple[Insight, ...]:
        """Return what to change, the most important first: `title`, `evidence`, `change`, `where`, `gain`."""
        return self.document.insights

    def show(self, file: TextIO | None = None, *, rest: str = ALL_BY_ATTRIBUTES) -> None:
        """Print the page to `file` (standard output); in a notebook show it in colours instead.

        `rest` tells the reader where to find the rows that a short table leaves out.
        """
        if ipython_shell() is not None:
            from IPython.display import display

            display(self)
        else:
            print(self._text(rest), end="", file=file)

    def save(self, base: str | os.PathLike[str] = "reports") -> Path:
        """Write the run into a folder of its own below `base`, as `profkit profile` does, and return that folder.

        Only artifacts with names that a pass writes are copied; a note counts the other files and the links, which are
        not followed. Raises `profkit.core.errors.ProfkitError` if the run cannot be written.
        """
        from profkit.profiling.profile import write_reports

        folder = create_run_folder(Path(base), self.document.name, self.document.backend, datetime.now())
        with writing(folder, elsewhere(Path(base))):
            not_copied = _copy_artifacts(self.path, folder, run_files(self.document.backend))
        note = (Fact.of("not-copied", count=not_copied),) if not_copied else ()
        write_reports(replace(self.document, notes=(*self.document.notes, *note)), folder)
        return folder

    def _text(self, rest: str = ALL_BY_ATTRIBUTES) -> str:
        from profkit.reporting import terminal
        from profkit.reporting.views.run import view

        return terminal.render(view(self.document), details=False, rest=rest)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return what IPython and notebooks show: the terminal's page, and the page of the run in a frame."""
        from profkit.reporting.html import page
        from profkit.reporting.views.run import view
        from profkit.reporting.views.run_about import read_extras

        shown = page.render(view(self.document, extras=read_extras(self.path)), inline=True)
        frame = (
            f'<style>{FRAME_COLOURS}</style><iframe class="profkit-page" srcdoc="{html.escape(shown)}" '
            f'sandbox="allow-scripts" style="{FRAME}"></iframe>'
        )
        return {"text/plain": self._text(), "text/html": frame}

    @property
    def name(self) -> str:
        """Return the name of the run's folder, or of the report."""
        return self.path.name

    def rows(self) -> list[Row]:
        """Return one row for each reading: `metric`, `value`, `unit`, `quality`, its scope, and its source.

        A reading that is unavailable has the value None, and its `reason`.
        """
        return [self._run_columns() | _reading_row(reading) for reading in self.document.readings]

    def verdicts(self) -> list[Row]:
        """Return one row for each verdict, worst first; `advice` has a line for each thing to try."""
        rows = []
        for verdict in worst_first(self.document.verdicts):
            columns: Row = {
                "target": verdict.target,
                "metric": verdict.metric,
                "verdict": verdict.verdict,
                "value": _as_float(verdict.value),
                "unit": verdict.unit,
                "threshold": threshold_text(verdict),
                "quality": verdict.quality,
                **_scope_columns(verdict.scope),
                "reason": fact_text(verdict.reason),
                "weight": verdict.weight,
                "advice": "\n".join(verdict.advice) or None,
            }
            rows.append(self._run_columns() | columns)
        return rows

    def _run_columns(self) -> Row:
        """Return the columns with which every row begins: the run it belongs to."""
        revision = self.document.revision
        return {
            "run": self.name,
            "workload": self.document.workload.name,
            "backend": self.document.backend,
            "state": self.document.state,
            "started": self.document.started or None,
            "commit": revision.commit if revision is not None else None,
        }

    def __repr__(self) -> str:
        """Return one line for a prompt, since the whole document may be a megabyte of text."""
        document = self.document
        parts = [f"{self.name}: {document.name} on {document.backend}", document.state, time_line(document)]
        line = text_for_others(", ".join(part for part in parts if part))
        return f"<Run {line}; rows(), verdicts(), .document>"


def _copy_artifacts(run: Path, folder: Path, wanted: FileNames) -> int:
    """Copy the wanted files of one run's folder to another; return how many files and links were not copied."""
    not_copied, top = 0, run / "artifacts"
    if top.is_symlink():
        return 1
    for place, folders, files in os.walk(top):
        for path in (Path(place, name) for name in (*folders, *files)):
            name = path.relative_to(run)
            if path.is_dir() and not path.is_symlink():
                continue
            inside = any(wanted.is_document(parent.as_posix()) for parent in name.parents)
            if not stat.S_ISREG(path.lstat().st_mode) or not (inside or wanted.wants(name.as_posix())):
                not_copied += 1
                continue
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name, follow_symlinks=False)
    return not_copied


def load(source: str | os.PathLike[str]) -> Run:
    """Read a run's folder, its run.json, or any report that profkit knows.

    A run keeps the verdicts that it got when it was made; a report is judged by the default targets. Raises
    `profkit.core.errors.ProfkitError`: UnreadableReport for a file that cannot be read, MachineError if reading it
    needs a tool that is missing here. Its `message` is the reason, and its `fix` the command that helps.
    """
    path = Path(source)
    document = read_judged(path)
    if path.name == FILE_NAME:
        path = path.absolute().parent
    return Run(document, path if path.name else path.resolve())


def _reading_row(reading: Reading) -> Row:
    return {
        "metric": reading.metric,
        "value": _as_float(reading.value),
        "unit": reading.unit,
        "quality": reading.quality,
        **_scope_columns(reading.scope),
        "tool": reading.source.tool,
        "counter": reading.source.counter,
        "formula": reading.source.formula,
        "artifact": reading.source.artifact,
        "reason": fact_text(reading.reason) or None,
        "fix": reading.fix,
        "doubt": fact_text(reading.doubt) or None,
        "share": reading.share,
    }


def _scope_columns(scope: Scope) -> Row:
    return {"scope_kind": scope.kind, "scope_name": scope.name, "scope_id": scope.id}


def _as_float(value: float | None) -> float | None:
    """Return the number as a float, since all values of a column must have the same type."""
    return float(value) if value is not None else None
