"""`profkit bisect`: from what was asked for to a finished bisection, new or resumed; and what one would cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone
from math import ceil, log2
from pathlib import Path

from profkit.core.errors import UsageError
from profkit.core.progress import Progress
from profkit.core.types import BisectDocument, BisectOptions, BisectPlan, BisectSearch
from profkit.regression.bisect.bisection import Bisection, resume_line
from profkit.regression.bisect.row import Row, row_between, row_inside
from profkit.regression.bisect.state import make_state_folder, read_state
from profkit.regression.paired.checkout import NoCheckout, no_repository, repository_of
from profkit.regression.paired.version import named_commit


@dataclass(frozen=True)
class BisectRequest:
    """What is asked: the commit after `good` and up to `bad` that changed the time of `command`."""

    good: str
    bad: str
    command: tuple[str, ...]
    options: BisectOptions
    setup: str | None = None
    cwd: Path = field(default_factory=Path.cwd)
    folder: Path | None = None  # for the state; None: a new one in reports/


def bisect(request: BisectRequest, progress: Progress) -> tuple[BisectDocument, Path]:
    """Search, and leave the state in a folder after each step; the document, and that folder.

    Raises UsageError, WorkloadError where an end does not run, and Interrupted after a Ctrl-C.
    """
    root, row = _requested_row(request)
    document = BisectDocument(
        datetime.now(timezone.utc).isoformat(timespec="seconds"),
        request.command,
        request.setup,
        str(request.cwd.resolve().relative_to(root)),
        request.good,
        request.bad,
        request.options,
        (BisectSearch(row.good, row.commits),),
    )
    folder = make_state_folder(request.folder)
    return Bisection(document, root, request.cwd, folder, progress).run(), folder


def resume(request: BisectRequest, folder: Path, progress: Progress) -> BisectDocument:
    """Go on with the bisection in `folder`, by its options.

    What runs is named again: both ends, the command and the setup command. Somebody else's folder runs nothing that
    was not typed. Raises UsageError where any of these is another, or the repository is.
    """
    document = read_state(folder)
    line = resume_line(document, folder)
    if (request.command, request.setup) != (document.command, document.setup):
        raise UsageError("the command and --setup are others than those of the folder", line)
    root, row = _requested_row(request)
    first, *inside = document.searches
    if (row.good, row.commits) != (first.good, first.commits):
        raise UsageError(f"GOOD and BAD have other commits between them than {folder}", line)
    if str(request.cwd.resolve().relative_to(root)) != document.cwd:
        fix = f"cd {root / document.cwd}"
        raise UsageError(f"it began in the folder {document.cwd} of the repository", fix)
    for search in inside:
        place = first.commits.index(search.inside) if search.inside in first.commits else -1
        parent = (first.good, *first.commits)[place]
        own = row_inside(root, search.inside, parent) if search.inside is not None and place >= 0 else None
        if own is None or (own.good, own.commits) != (search.good, search.commits):
            raise UsageError(
                "the folder searches commits that no merge between GOOD and BAD brought in", line
            )
    return Bisection(document, root, request.cwd, folder, progress).run()


def exit_code(document: BisectDocument) -> int:
    """0 where a commit was found, alone or with others; 5 where none was."""
    return 0 if any(part.kind == "one" for part in document.searches[0].parts) else 5


def plan_bisect(request: BisectRequest) -> BisectPlan:
    """The commits between the ends, and the tests that a search of them takes. Raises UsageError.

    The ends, a test for each halving and one that confirms; on a noisy machine twice as many and some again.
    """
    _, row = _requested_row(request)
    halvings = log2(len(row.commits)) if len(row.commits) > 1 else 0.0
    steps, most = halvings + 2, ceil(2 * halvings) + 4
    budget = request.options.budget
    return BisectPlan(
        request.good,
        request.bad,
        len(row.commits),
        len(row.merges),
        steps,
        most,
        budget,
        budget * steps,
        budget * most,
    )


def _requested_row(request: BisectRequest) -> tuple[Path, Row]:
    """The repository, and the commits between the ends. Raises UsageError."""
    root = repository_of(request.cwd)
    if root is None:
        fault = no_repository(request.cwd)
        raise UsageError(fault.reason, fault.fix)
    try:
        ends = named_commit(root, request.good), named_commit(root, request.bad)
    except NoCheckout as fault:
        raise UsageError(fault.reason, fault.fix) from None
    return root, row_between(root, *ends)
