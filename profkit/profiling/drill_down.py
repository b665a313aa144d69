"""A closer look at chosen rows of a table, of a sweep or an evaluation: each through `profkit profile`, and linked."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from profkit.core.errors import Interrupted, ProfkitError, UsageError
from profkit.core.progress import Progress
from profkit.core.types import RunDocument
from profkit.execution.places.files import Sending
from profkit.execution.places.place import ExecutionPlace
from profkit.kernels.places import format_places
from profkit.profiling.elsewhere.verbs import profile_elsewhere
from profkit.profiling.profile import ProfileOptions, profile_workload

FOLDER = "profiles"  # in the table's folder, in which the runs are
Choices: TypeAlias = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class LinkedRun:
    """The run of a row: its folder as the table's folder knows it. `document` is None where the run failed."""

    link: str
    document: RunDocument | None = None


@dataclass(frozen=True)
class ProfiledElsewhere:
    """The places that may profile a row, and what may go there with the `files` of its program."""

    places: tuple[ExecutionPlace, ...]
    sending: Sending

    def first_at(self, title: str | None, files: Sequence[Path]) -> ProfiledElsewhere | None:
        """The same with the place of that title before the others; None where that, or each, is this machine."""
        measured = {place.title: place for place in self.places}.get(title or "")
        elsewhere = [place for place in self.places if not place.is_local]
        if not elsewhere or (measured is not None and measured.is_local):
            return None
        places = sorted(elsewhere, key=lambda place: place is not measured)
        return ProfiledElsewhere(tuple(places), replace(self.sending, paths=(*self.sending.paths, *files)))


def parse_choices(text: str, names: Collection[str], rows: str) -> Choices:
    """`slowest:2,farthest` as (("slowest", 2), ("farthest", 1)). `rows`: what is chosen, for the message.

    Raises UsageError for what is none.
    """
    examples = " or ".join(f"--profile {name}:2" for name in names)
    choices = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, colon, count = word.partition(":")
        if name not in names or (colon and not (count.isdecimal() and int(count))):
            raise UsageError(f"--profile {text} chooses no {rows}", examples)
        choices.append((name, int(count) if colon else 1))
    if not choices:
        raise UsageError(f"--profile chooses no {rows}", examples)
    return tuple(choices)


def has_run(folder: Path, link: str | None) -> bool:
    """Whether the row's run is there already."""
    return link is not None and (folder / link).is_dir()


def profile_row(
    options: ProfileOptions,
    label: str,
    folder: Path,
    table: str,
    choices: Choices,
    progress: Progress,
    elsewhere: ProfiledElsewhere | None = None,
) -> LinkedRun | None:
    """Profile the program of one row of the `table` (sweep, evaluation) in `folder`; None where there is no run of it.

    A profile that fails costs this row alone. Raises Interrupted after a Ctrl-C: what is half is not linked.
    """
    progress.note(f"profile of {label}")
    document: RunDocument | None = None
    where = "" if elsewhere is None else f" {format_places(elsewhere.places, elsewhere.sending)}"
    verb = {"evaluation": "evaluate"}.get(table, table)
    try:
        if elsewhere is None:
            document, run = profile_workload(options, progress)
        else:
            document, run = profile_elsewhere(options, elsewhere.places, elsewhere.sending, progress)
        if document.state == "interrupted":
            fault = Interrupted(
                f"interrupted; the {table} is kept, and the profiles that were finished are linked",
                f"profkit {verb} --resume {folder} --profile {_format_choices(choices)} "
                f"--profile-depth {options.depth}{where}",
            )
            fault.run = run
            raise fault
    except ProfkitError as fault:
        if fault.exit_code == 130:
            raise
        progress.note(f"no profile of {label}: {fault.message}")
        if fault.run is None:
            return None
        run = fault.run
    return LinkedRun(Path(os.path.relpath(run, folder)).as_posix(), document)


def _format_choices(choices: Choices) -> str:
    return ",".join(f"{name}:{count}" for name, count in choices)
