"""Which commit changed a time: the commits, the paired tests that were made, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from profkit.core.types.comparison import ChangeWord, Fact
from profkit.core.types.readings import RUN, Scope

CERTAINTY = 0.95  # the probability at which a search ends
# `running`: not at its end, or ended before it; `found`: one commit, or one of several that cannot be told apart;
# `several`: the change has parts in several commits; `same`, `ambiguous`: the two ends are, so nothing was searched;
# `open`: the steps were spent before one commit was likely enough.
BisectState = Literal["running", "found", "several", "same", "ambiguous", "open"]


@dataclass(frozen=True)
class BisectStep:
    """One paired test: `later` was run in turn with `earlier` (hashes).

    `pairs` has the seconds of (earlier, later); `ratio` is later over earlier with its interval. `seconds`: the wall
    time of the step with its checkouts. `probability`: after the step, that the change is at `later` or before it.
    """

    kind: Literal["ends", "search", "confirm"]
    earlier: str
    later: str
    pairs: tuple[tuple[float, ...], ...]
    word: ChangeWord
    ratio: float
    low: float
    high: float
    seconds: float
    probability: float | None = None


@dataclass(frozen=True)
class SkippedCommit:
    """A commit that could not be built or run, and why."""

    commit: str
    reason: str
    fix: str | None = None


@dataclass(frozen=True)
class BisectPart:
    """Where a part of the change is: in one of `commits`, the oldest first, which follow `baseline`.

    `one`: a single commit made it; with several `commits`, one of these, between which nothing could be run.
    `rest`: what lies there is too small to be searched, or no single commit made it. `ratio` is that of the last of
    `commits` over `baseline`, with its interval where both were run in turn; `word` is the word on that.
    """

    kind: Literal["one", "rest"]
    baseline: str
    commits: tuple[str, ...]
    probability: float
    ratio: float
    low: float | None = None
    high: float | None = None
    word: ChangeWord | None = None
    files: tuple[str, ...] = ()  # that the last of `commits` changed, with how much: as git tells


@dataclass(frozen=True)
class BisectSearch:
    """The search: `commits` follow `good`, the oldest first; the last one is the bad end."""

    good: str
    commits: tuple[str, ...]
    scope: Scope = RUN  # whose time was searched
    steps: tuple[BisectStep, ...] = ()
    skipped: tuple[SkippedCommit, ...] = ()
    state: BisectState = "running"
    parts: tuple[BisectPart, ...] = ()
    probabilities: Mapping[str, float] = field(
        default_factory=dict
    )  # by hash, where the change is in one commit


@dataclass(frozen=True)
class BisectOptions:
    """`budget` in wall seconds of each step, `floor` the relative change that counts; as of `compare --base`."""

    budget: float
    floor: float
    sampling: float
    timeout: float | None


@dataclass(frozen=True)
class BisectDocument:
    """A bisection, at its end or on its way. `cwd` is where the command runs, relative to the repository."""

    started: str
    command: tuple[str, ...]
    setup: str | None
    cwd: str
    good: str  # as they were named
    bad: str
    options: BisectOptions
    search: BisectSearch
    subjects: Mapping[str, str] = field(default_factory=dict)  # first lines of messages, by hash
    notes: tuple[Fact, ...] = ()
