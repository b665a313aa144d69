"""Compare several workloads between the same two versions, by a nightly's file, to judge a pull request.

Used from the file are each workload's command, cwd, env, timeout, timing, precision and floor of
`time.median`, and from `pairs` the checkout and setup. Its history, gates and notices belong to the nightly
alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from profkit.core.errors import Interrupted, MachineError, ProfkitError, Progress, UsageError, WorkloadError
from profkit.core.types import (
    ComparedEnding,
    ComparedSuite,
    ComparedWorkload,
    Fact,
    SuiteOutcome,
)
from profkit.regression.nightly.config import NightConfig, WorkloadSpec, read_config
from profkit.regression.paired.checkout import (
    CheckoutSpec,
    git_line,
    known_name,
    named_commit,
    repository_of,
)
from profkit.regression.paired.compare_versions import VersionsRequest, compare_versions
from profkit.regression.paired.interleave import TIME, PairedOptions

# The gravest first: the word of a workload, the outcome that it makes, and the exit code.
_GRAVE: tuple[tuple[str, SuiteOutcome, int], ...] = (
    ("regressed", "regressed", 1),
    ("failed", "failed", WorkloadError.exit_code),
    ("machine", "refused", MachineError.exit_code),
    ("refused", "refused", UsageError.exit_code),
)
_OTHERS: tuple[SuiteOutcome, ...] = ("improved", "changed", "same", "ambiguous", "new")
_ORDER = (
    *("regressed", "failed", "refused", "machine", "ambiguous", "changed", "improved", "same", "new"),
    *("elsewhere", "interrupted"),
)
_WORDS_LOOKED_AT = 32  # of a command, for files that the baseline lacks
UNDECIDED = 5


@dataclass(frozen=True)
class SuiteRequest:
    """What is compared. `pairs.budget` is for each workload; `floor` and `setup` override the file's if given."""

    file: Path
    base: str
    head: str | None = None
    setup: tuple[str, ...] = ()
    floor: float | None = None
    pairs: PairedOptions = field(default_factory=PairedOptions)
    causes: bool = True
    strict: bool = False


def compare_suite(request: SuiteRequest, progress: Progress) -> ComparedSuite:
    """Compare one workload after the other; one that fails stops no other. A Ctrl-C ends it with what there is.

    Raises UsageError if the file cannot be read, or there is no such commit.
    """
    config = read_config(request.file)
    started, began = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.monotonic()
    if (root := repository_of(config.path.parent)) is not None:
        request = replace(request, base=known_name(root, request.base))
        named_commit(root, request.base)  # for one that is not there all files would be new
    done: list[ComparedWorkload] = []
    interrupted = False
    for number, spec in enumerate(config.workloads, 1):
        if interrupted:
            done.append(ComparedWorkload(spec.name, "interrupted"))
            continue
        progress.note(f"workload {number} of {len(config.workloads)}: {spec.name}")
        try:
            workload, interrupted = _compare_one(spec, config, request, progress)
        except KeyboardInterrupt:
            if not done:
                raise
            workload, interrupted = ComparedWorkload(spec.name, "interrupted"), True
        done.append(workload)
    ordered = tuple(sorted(done, key=lambda workload: _ORDER.index(_word_of(workload))))
    return ComparedSuite(
        config.name,
        suite_outcome(ordered),
        suite_exit_code(ordered, interrupted=interrupted, strict=request.strict),
        started,
        time.monotonic() - began,
        ordered,
        interrupted,
    )


def suite_outcome(workloads: Sequence[ComparedWorkload]) -> SuiteOutcome:
    """Return the worst outcome of the workloads; an open one counts only if nothing was decided."""
    words = {_word_of(workload) for workload in workloads}
    grave = (outcome for word, outcome, _ in _GRAVE if word in words)
    return next(grave, next((word for word in _OTHERS if word in words), "ambiguous"))


def suite_exit_code(workloads: Sequence[ComparedWorkload], *, interrupted: bool, strict: bool) -> int:
    """Return the exit code: 130 interrupted; 1 one regressed; 4 one failed; 3 this machine cannot run one.

    2 a version of one is not available; 5 if nothing was decided at all, and with `strict` if any is open; else 0:
    one noisy workload of several stops no merge. A workload that only the candidate has is no fault.
    """
    words = {_word_of(workload) for workload in workloads}
    if interrupted:
        return Interrupted.exit_code
    if grave := [code for word, _, code in _GRAVE if word in words]:
        return grave[0]
    decided = words & {"improved", "changed", "same"}
    is_open = "ambiguous" in words and (strict or not decided)
    return UNDECIDED if is_open or not (decided or "new" in words) else 0


def _word_of(workload: ComparedWorkload) -> str:
    return workload.comparison.outcome if workload.comparison is not None else workload.ending


def _compare_one(
    spec: WorkloadSpec, config: NightConfig, request: SuiteRequest, progress: Progress
) -> tuple[ComparedWorkload, bool]:
    """Compare one workload; return it, and whether a Ctrl-C ended its runs."""
    if spec.on is not None:
        reason = Fact.of("runs-elsewhere", place=spec.on)
        return ComparedWorkload(spec.name, "elsewhere", reason=reason), False
    missing = _missing_in_base(spec, request.base)
    if missing is not None:
        reason = Fact.of("not-in-base", base=request.base, file=missing)
        return ComparedWorkload(spec.name, "new", reason=reason), False
    try:
        result = compare_versions(_request_for(spec, config, request), progress)
    except ProfkitError as fault:
        progress.note(f"not compared: {fault.message.splitlines()[0] if fault.message else 'it failed'}")
        reason = Fact.message(fault.message)
        return ComparedWorkload(spec.name, _ending_of(fault), None, reason, fault.fix), False
    return ComparedWorkload(spec.name, "compared", result.comparison), result.interrupted


def _ending_of(fault: ProfkitError) -> ComparedEnding:
    if isinstance(fault, WorkloadError):
        return "failed"
    return "machine" if isinstance(fault, MachineError) else "refused"


def _request_for(spec: WorkloadSpec, config: NightConfig, request: SuiteRequest) -> VersionsRequest:
    floor = request.floor
    if floor is None:
        floor = spec.rule(TIME).relative if TIME in spec.floors else request.pairs.floor
    run = replace(
        request.pairs.run,
        precision=spec.precision,
        sampling=spec.timing if spec.timing is not None else request.pairs.run.sampling,
        timeout=spec.timeout if spec.timeout is not None else request.pairs.run.timeout,
    )
    return VersionsRequest(
        spec.command,
        request.base,
        request.head,
        cwd=spec.cwd,
        env=spec.env,
        checkout=CheckoutSpec(request.setup or config.pairs.setup, config.pairs.setup_timeout),
        pairs=replace(request.pairs, floor=floor, run=run),
        causes=request.causes,
        backend=spec.backend,
    )


def _missing_in_base(spec: WorkloadSpec, base: str) -> str | None:
    """Return the first file of the command that git follows here and the baseline lacks; None if it has all."""
    root = repository_of(spec.cwd)
    if root is None:
        return None
    for word in (".", *spec.command[:_WORDS_LOOKED_AT]):
        try:
            path = (spec.cwd / word).resolve()
            if not path.is_relative_to(root) or path == root or not path.exists():
                continue
        except OSError:  # a word that is no name of a file: too long, code
            continue
        inside = str(path.relative_to(root))
        followed = git_line(root, "ls-files", "--error-unmatch", "--", f":(literal){inside}") is not None
        if followed and git_line(root, "cat-file", "-e", f"{base}:{inside}") is None:
            return inside
    return None
