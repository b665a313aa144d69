"""The engine that works through many cases: a sweep, an evaluation, a generation.

Every case has an id. Workers do those without an outcome in the journal, and each outcome is appended to the
journal at once, so a resumed campaign does only what the journal lacks. One Ctrl-C ends the work, keeps the
outcomes, writes the results so far, and prints the command that resumes; a second Ctrl-C is ignored until
that is done.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

from profkit.core.errors import Interrupted, MachineError, ProfkitError, Progress, UsageError
from profkit.core.formatting import format_duration, plural
from profkit.core.signals import defer_interrupts, raise_on_signals
from profkit.execution.child import WorkerClient
from profkit.execution.journal import Journal, JournalFormat, open_journal
from profkit.execution.places.connection import PlaceWorker
from profkit.execution.pool import Job, JobOutcome, WorkerPool
from profkit.hardware.gpu_locks import lock_gpus
from profkit.kernels.devices import worker_uuids
from profkit.kernels.places import PlaceSlots, SlotWork

T = TypeVar("T")
# The option, and the path behind it; what begins with no dash is an argument.
Code: TypeAlias = tuple[str, str]
REPORT_SECONDS = 1.0  # between two looks at how far it is
MIN_SETTLED = 8  # cases after which what they took says how long the rest may take


class Campaign(Generic[T]):
    """One call of a campaign; several calls may share its folder."""

    def __init__(
        self, format: JournalFormat[T], journal: Journal[T], progress: Progress, resume_line: str
    ) -> None:
        self.format, self.journal, self.progress, self.resume_line = format, journal, progress, resume_line
        self.settled = 0
        self.planned: int | None = 0  # cases of this call; None where it is not known how many it will be
        self.result: Any = None  # what writing the results gave
        self._counting = threading.Lock()
        self._ends = ExitStack()
        self._describe: Callable[[], str] = self._describe_rest
        self._begun = self._next_report = 0.0

    @property
    def about(self) -> dict[str, Any]:
        """Return what was noted about the campaign, by this call or an earlier one."""
        return self.journal.contents.about

    def settle(self, case: str, outcome: T) -> None:
        """Keep the outcome of a case. Raises MachineError where the disk is full."""
        self.journal.settle(case, outcome)
        with self._counting:  # several threads settle attempts
            self.settled += 1

    def at_end(self, end: Callable[[], object]) -> None:
        """Register `end`, which is called when the work ends, for whatever reason; the last one given comes first."""
        self._ends.callback(end)

    def end_work(self) -> None:
        """End everything that was registered with `at_end`: workers, places, locks."""
        self._ends.close()

    @property
    def done(self) -> str:
        """Return how far this call is: `3 of 18 cases`."""
        total = self.settled if self.planned is None else self.planned
        of = "" if self.planned is None else f"{self.settled} of "
        return of + plural(total, self.format.case)

    def begin(
        self, title: str, detail: str, planned: int | None, describe: Callable[[], str] | None = None
    ) -> None:
        """Begin a step of `planned` cases (None where their number is not known).

        `describe` returns how far they are; by default their number and the time left.
        """
        self.planned, self._describe = planned, describe or self._describe_rest
        self._begun = self.journal.session_seconds
        self.progress.begin(title, detail)

    def _describe_rest(self) -> str:
        """Return how far this call is and the time left: `120 of 5,096 tests, about 40 s left`."""
        if self.settled < MIN_SETTLED or self.planned is None:
            return self.done
        each = (self.journal.session_seconds - self._begun) / self.settled
        return f"{self.done}, about {format_duration((self.planned - self.settled) * each)} left"

    def tick(self) -> None:
        """Show the progress; called a few times a second."""
        gone = self.journal.session_seconds
        if gone >= self._next_report:
            self.progress.move(self._describe())
            self._next_report = gone + REPORT_SECONDS
        self.progress.tick(gone)

    def lock_gpus(self, gpus: Sequence[str]) -> None:
        """Lock these devices against other runs of profkit until the work ends."""
        self._ends.enter_context(lock_gpus(worker_uuids(gpus), self.progress))

    def open_pool(
        self,
        settle: Callable[[JobOutcome], None],
        work: SlotWork,
        clients: Callable[[], Sequence[WorkerClient]],
        elsewhere: PlaceSlots | None,
        *,
        gpus: Sequence[str] | None,
        timeout: float,
        settings: Mapping[str, object],
        check: Callable[[int, Any, Any], None],
    ) -> WorkerPool:
        """Create the workers for the cases: `clients` here, with `gpus` locked, or those that do `work` `elsewhere`."""
        workers: Sequence[WorkerClient | PlaceWorker]
        if elsewhere is None:
            if gpus is not None:
                self.lock_gpus(gpus)
            workers = clients()
        else:
            self.at_end(elsewhere.close)
            elsewhere.connect(work, self.progress)
            workers = elsewhere.workers
        pool = WorkerPool(
            workers,
            settle,
            timeout=timeout,
            settings=settings,
            check=check,
            note=self.progress.note,
        )
        self.at_end(pool.close)
        return pool

    def open_workers(self, pool: WorkerPool) -> dict[str, Any]:
        """Start the workers and return how the first one describes its device."""
        about: dict[str, Any] = pool.open(lambda: self.progress.tick(self.journal.session_seconds))
        return about

    def do(self, pool: WorkerPool, groups: Iterable[Sequence[Job]], tick: Callable[[], None]) -> None:
        """Run all cases of the groups. Raises MachineError where some were not settled."""
        pool.run(groups, tick)
        if self.planned is not None and self.settled < self.planned:
            raise pool.fault or MachineError(f"only {self.done} of the {self.format.subject} were done")


@contextlib.contextmanager
def open_campaign(
    format: JournalFormat[T],
    folder: Path,
    header: Mapping[str, Any],
    progress: Progress,
    resume_line: str,
    write: Callable[[Journal[T]], object],
) -> Iterator[Campaign[T]]:
    """Open a campaign for the block, in which its cases are done.

    However the block ends, the outcomes are kept, and `write` writes the results and gives the campaign's
    `result`. Raises Interrupted after a Ctrl-C, and what the block raises, with the command that resumes.
    """
    with ExitStack() as cleanup, raise_on_signals():
        journal = open_journal(folder, format, header)
        cleanup.callback(journal.close)
        campaign = Campaign(format, journal, progress, resume_line)
        cleanup.callback(campaign.end_work)
        try:
            yield campaign
            with defer_interrupts():
                campaign.result = write(journal)
        except (KeyboardInterrupt, Interrupted):
            with defer_interrupts():  # a second Ctrl-C must not cost what the first one left
                campaign.end_work()
                write(journal)
            kept = plural(len(journal.contents.outcomes), format.case)
            progress.fail(f"interrupted after {campaign.done}; they are kept")
            raise Interrupted(
                f"interrupted; {kept} of the {format.subject} are in {folder}", resume_line
            ) from None
        except ProfkitError as fault:
            campaign.end_work()
            _keep_after(fault, campaign, folder, write)
            raise


def _keep_after(
    fault: ProfkitError, campaign: Campaign[T], folder: Path, write: Callable[[Journal[T]], object]
) -> None:
    """Add to a fault what is kept and the command that resumes; remove the folder where nothing was begun."""
    journal, format = campaign.journal, campaign.format
    if journal.contents.outcomes or campaign.settled:
        fault.run = folder
    if campaign.settled:
        with defer_interrupts(), contextlib.suppress(ProfkitError):
            write(journal)
        fault.message += f"\n{campaign.done} of the {format.subject} are in {folder}"
        before = fault.fix if fault.fix and campaign.resume_line not in fault.fix else ""
        fault.fix = f"{before}   (then: {campaign.resume_line})" if before else campaign.resume_line
    elif journal.is_new and not campaign.about:  # nothing was begun: no folder is left behind
        shutil.rmtree(folder, ignore_errors=True)


def resume_line(command: str, folder: Path, codes: Sequence[Code], elsewhere: PlaceSlots | None) -> str:
    """Return the command that resumes, with the code that must be named again and the places."""
    on = elsewhere.options if elsewhere is not None else ""
    return " ".join(filter(None, (f"{command} --resume {folder}", code_options(codes), on)))


def require_named(wanted: Sequence[Code], named: Sequence[Code], line: str, *, needed: bool = True) -> None:
    """Raise UsageError where code of the folder was not named again, or where other code was named.

    `line` is the command typed so far. `needed` says whether any of that code would run.
    """
    known = {(option, Path(path).resolve()): (option, path) for option, path in wanted}
    given = {(option, Path(path).resolve()): (option, path) for option, path in named}
    for key, (option, path) in given.items():
        if key not in known:
            what = f"{option} {path}" if option.startswith("-") else path
            raise UsageError(f"{what} cannot be changed by --resume: the folder keeps its own settings", line)
    missing = [code for key, code in known.items() if key not in given]
    if needed and missing:
        paths = ", ".join(path for _, path in missing)
        raise UsageError(
            f"the folder names code that would run here: {paths}; it runs only if you name it as well",
            f"{line} {code_options(wanted)}",
        )


def working_directory() -> str:
    """Return the working directory; empty where it was removed, which costs no results."""
    with contextlib.suppress(OSError):
        return str(Path.cwd())
    return ""


def code_options(codes: Sequence[Code]) -> str:
    """Return the words that name the code on a command line, quoted for a shell."""
    return " ".join(
        f"{option} {shlex.quote(path)}" if option.startswith("-") else shlex.quote(path)
        for option, path in codes
    )
