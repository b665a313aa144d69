"""Two runs side by side: may they be compared, what is different, and why; and which commit caused it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from profkit.core.types.readings import RUN, Direction, Fact, Scope

# How much a field of the fingerprint weighs. `must`: where it differs there is no comparison, and a history begins a
# new segment; `should`: it is shown beside the verdict.
Tier = Literal["must", "should"]
# What an interval of the ratio says: beyond what counts as a change, within it, or neither.
ChangeWord = Literal["different", "same", "ambiguous"]
Course = Literal["better", "worse", "neither"]
ComparisonOutcome = Literal["regressed", "improved", "changed", "same", "ambiguous", "refused"]


@dataclass(frozen=True)
class Feature:
    """One property that must be alike for two runs to be compared: `gpu.name`, `driver.major`, `cache mode`, ..."""

    name: str
    value: str | None  # None: this run does not say
    tier: Tier


@dataclass(frozen=True)
class Difference:
    """One property in which two runs differ."""

    name: str
    tier: Tier
    baseline: str | None
    candidate: str | None


@dataclass(frozen=True)
class Sample:
    """One value of a metric in a comparison: the centre, its 95 % interval, and the samples by process or round."""

    value: float
    low: float | None = None
    high: float | None = None
    groups: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Change:
    """How one metric changed in one scope."""

    metric: str
    unit: str
    better: Direction
    baseline: Sample
    candidate: Sample
    word: ChangeWord
    course: Course
    scope: Scope = RUN
    ratio: float | None = None  # candidate over baseline, with
    low: float | None = None  # its interval, at the confidence that the number of metrics looked at asks for
    high: float | None = None
    p: float | None = None  # adjusted for how many were looked at; None where no test was made
    floor: float = 0.0  # the relative change that counts at all
    limit: float | None = None  # the same in the metric's unit, where single values were compared
    detectable: float | None = None  # the smallest change that these samples could have shown
    tool: str = "profkit"  # what measured it
    # decides: worse is a regression; stands-in: it decides where no time was sampled; supports: it only explains
    role: Literal["decides", "stands-in", "supports"] = "decides"
    doubts: tuple[Fact, ...] = ()  # what the interval does not know, or why there is none
    fix: Fact | None = None  # what would decide it, where it is AMBIGUOUS and that is known


CodeChangeWord = Literal["appeared", "vanished", "slower", "faster", "same", "ambiguous"]


@dataclass(frozen=True)
class CodeChange:
    """One kernel, or function of a profile, in both runs; values per iteration, None where it is not in that run."""

    name: str
    word: CodeChangeWord
    baseline: float | None = None  # of a kernel its GPU time, of a function its own value
    candidate: float | None = None
    launch: str | None = None  # grid and block, as the candidate has them where it has the kernel
    share: float = 0.0  # of the GPU time, 0..1, in the run in which it has more
    unit: str = "s"
    profile: str | None = None  # the title of a function's profile: "functions by instructions"


@dataclass(frozen=True)
class Cause:
    """A reason for a change, as far as the counters of both runs show it, and the values behind it."""

    kind: str  # "occupancy", "clocks", "moved", "bytes", "work", ...
    what: Fact
    scope: Scope = RUN
    evidence: tuple[Fact, ...] = ()  # registers per thread: 40, 64


@dataclass(frozen=True)
class Side:
    """One of the two runs: what it was, and where it came from."""

    name: str
    path: str
    backend: str
    started: str
    commit: str | None = None
    dirty: bool | None = None


@dataclass(frozen=True)
class Pairing:
    """How two versions were run alternately.

    `waited`: the share of time without a processor, taken out of every time.
    """

    pairs: int
    seconds: float
    budget: float
    waited: float | None = None


@dataclass(frozen=True)
class BlamedLine:
    """A line changed by a commit, in code that became slower."""

    path: str  # relative to the repository
    line: int
    text: str
    commit: str
    subject: str
    function: str
    why: Fact  # what of it changed: instructions of its own, 13.6 M, 777 M


@dataclass(frozen=True)
class Comparison:
    """Everything that is said of two runs. `refused`: they must not be compared, and `differences` says why."""

    baseline: Side
    candidate: Side
    outcome: ComparisonOutcome
    why: Fact
    forced: bool = False
    differences: tuple[Difference, ...] = ()
    changes: tuple[Change, ...] = ()  # worst first
    kernels: tuple[CodeChange, ...] = ()
    functions: tuple[CodeChange, ...] = ()
    causes: tuple[Cause, ...] = ()
    looked_at: int = 0  # how many metrics were tested, which the adjustment is for
    notes: tuple[Fact, ...] = ()
    fix: Fact | None = None  # what would change a refusal, or decide what is open
    pairing: Pairing | None = None  # where both were run alternately, and not recorded apart
    blamed: tuple[BlamedLine, ...] = ()  # the likeliest first


# `new`: the baseline does not have it; `refused`, `machine`: a version could not be had, or this machine cannot.
ComparedEnding = Literal["compared", "new", "elsewhere", "failed", "refused", "machine", "interrupted"]
SuiteOutcome = Literal[ComparisonOutcome, "failed", "new"]


@dataclass(frozen=True)
class ComparedWorkload:
    """One workload of a suite: its comparison, or why there is none."""

    name: str
    ending: ComparedEnding
    comparison: Comparison | None = None
    reason: Fact | None = None
    fix: str | None = None


@dataclass(frozen=True)
class ComparedSuite:
    """Several workloads, each compared between the same two versions; the worst first. `seconds` is wall time."""

    name: str
    outcome: SuiteOutcome
    exit_code: int
    started: str
    seconds: float
    workloads: tuple[ComparedWorkload, ...]
    interrupted: bool = False


# ---------------------------------------------------------------- the commit that changed a time

CERTAINTY = 0.95  # the probability at which a search ends
# `running`: not at its end, or ended before it; `found`: one commit, or one of several that cannot be told apart;
# `several`: the change has parts in several commits; `same`, `ambiguous`: the two ends are, so nothing was searched;
# `open`: the steps were spent before one commit was likely enough.
BisectState = Literal["running", "found", "several", "same", "ambiguous", "open"]


@dataclass(frozen=True)
class BisectStep:
    """One paired test: `later` was run alternately with `earlier` (hashes)."""

    kind: Literal["ends", "search", "confirm"]
    earlier: str
    later: str
    pairs: tuple[tuple[float, ...], ...]  # seconds of (earlier, later)
    word: ChangeWord
    ratio: float
    low: float
    high: float
    seconds: float  # wall time, with the checkouts


@dataclass(frozen=True)
class BisectPart:
    """Where a part of the change is: in one of `commits`, the oldest first, which follow `baseline`."""

    # `one`: a single one made it, the others could not be run; `rest`: too small to be searched, or made by several
    kind: Literal["one", "rest"]
    baseline: str
    commits: tuple[str, ...]
    probability: float
    ratio: float  # the last of `commits` over `baseline`, with its interval and word where both were run alternately
    low: float | None = None
    high: float | None = None
    word: ChangeWord | None = None


@dataclass(frozen=True)
class BisectSearch:
    """The search: `commits` follow `good`, the oldest first; the last one is the bad end."""

    good: str
    commits: tuple[str, ...]
    scope: Scope = RUN  # whose time was searched
    steps: tuple[BisectStep, ...] = ()
    skipped: Mapping[str, Fact] = field(default_factory=dict)  # by hash: why it could not be built or run
    state: BisectState = "running"
    parts: tuple[BisectPart, ...] = ()
    # By hash, where the change is in one commit
    probabilities: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class BisectOptions:
    """Options of a bisection: `budget` in wall seconds for each step, `floor` the relative change that counts.

    The same as those of `compare --base`.
    """

    budget: float
    floor: float
    sampling: float
    timeout: float | None


@dataclass(frozen=True)
class BisectDocument:
    """A bisection, complete or under way. `cwd` is where the command runs, relative to the repository."""

    started: str
    command: tuple[str, ...]
    setup: str | None
    cwd: str
    good: str  # as they were named
    bad: str
    options: BisectOptions
    search: BisectSearch
    subjects: Mapping[str, str] = field(default_factory=dict)  # first lines of messages, by hash
