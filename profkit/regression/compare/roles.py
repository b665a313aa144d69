"""Kernels that only one of two runs has, paired by their role: a kernel that was rewritten mostly changes its name.

A wrong pair is worse than none: nothing is paired where two could be meant, and one sign alone is never enough.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from profkit.analysis.comparability.fingerprint import program_of
from profkit.analysis.kernel_names.forms import read_signature
from profkit.analysis.kernel_names.owner import OWN_CODE, is_matrix_product, kernel_owner
from profkit.core.types import KernelTime, RoleSign, RunDocument
from profkit.regression.compare.kernels import KernelPair, MatchedKernels, TracedRun

LEAST_SHARE = 0.005  # of the GPU time: smaller kernels are not paired, and stand in nobody's way
MOST = 64  # kernels of each side that are looked at, the largest first
SAME_CALLS = 0.02  # calls per iteration, relative: the ends of a trace cut through an iteration
LEAST_LIKENESS = 0.5  # of the words of both names that both have
_ONE_ROLE = ("product", "flash-attention")  # kinds of library kernels that all do the same
# a launch that became faster or slower by more does other work, unless its name says otherwise
MOST_FASTER = 10.0

_Signs: TypeAlias = frozenset[RoleSign]
# What must agree, the surest first. A stage pairs what has one counterpart in it, and is the only one of that.
_STAGES: tuple[_Signs, ...] = (
    frozenset({"operation", "calls"}),
    frozenset({"name", "shape", "calls"}),
    frozenset({"name", "shape"}),
    frozenset({"name", "calls"}),
    frozenset({"name", "alone"}),
    frozenset({"only"}),
)


def pair_by_role(baseline: RunDocument, candidate: RunDocument, matched: MatchedKernels) -> MatchedKernels:
    """`matched`, and those of one run alone that play the same role in theirs; each such pair says why it is one.

    Own code is paired by a similar name and one more sign; a library's kernels, whose names say nothing of the role, by
    their operation. Encoders of Metal, named by numbers, are not paired.
    """
    if (
        not matched.vanished
        or not matched.appeared
        or baseline.metal is not None
        or candidate.metal is not None
    ):
        return matched
    before, after = TracedRun(baseline), TracedRun(candidate)
    named = program_of(baseline.workload)
    same_program = named is not None and named == program_of(candidate.workload)
    while (step := _pair_once(before, after, matched, same_program=same_program)) is not None:
        matched = step
    return matched


def _pair_once(
    before: TracedRun, after: TracedRun, matched: MatchedKernels, *, same_program: bool
) -> MatchedKernels | None:
    """One stage further: the pairs of the first stage that has any; None where none has."""
    own, counterparts = _candidates(before, matched.vanished), _candidates(after, matched.appeared)
    alike = _names_alike(own, counterparts)
    signs = {
        (a, b): _signs_of(one, two, (a, b) in alike, same_program=same_program)
        for a, one in enumerate(own)
        for b, two in enumerate(counterparts)
    }
    for stage in _STAGES:
        links = [place for place, seen in signs.items() if stage <= seen]
        lefts, rights = Counter(a for a, _ in links), Counter(b for _, b in links)
        sure = [(a, b) for a, b in links if lefts[a] == 1 and rights[b] == 1]
        if sure:
            pairs = [_pair_of(own[a].time, counterparts[b].time, signs[a, b]) for a, b in sure]
            gone, new = {id(pair.before) for pair in pairs}, {id(pair.after) for pair in pairs}
            return MatchedKernels(
                (*matched.pairs, *pairs),
                tuple(time for time in matched.vanished if id(time) not in gone),
                tuple(time for time in matched.appeared if id(time) not in new),
            )
    return None


_NAMED: tuple[RoleSign, ...] = ("operation", "name", "shape", "calls", "alone", "only")


def _pair_of(before: KernelTime, after: KernelTime, signs: _Signs) -> KernelPair:
    shapes = [(time.kernel.grid, time.kernel.block) for time in (before, after)]
    named = tuple(sign for sign in _NAMED if sign in signs and not (sign == "alone" and "only" in signs))
    return KernelPair(before, after, shapes[0] != shapes[1], named)


# ---------------------------------------------------------------- what a kernel is among the others of its run


@dataclass(frozen=True)
class _Candidate:
    """A kernel of one run alone with what tells its role. `kind`: whose code it is, and whether a matrix product."""

    time: KernelTime
    kind: str
    launch_seconds: float
    calls: float | None  # per iteration; None where the tool counted launches that it was told to
    operations: frozenset[str]  # in which no other kernel without counterpart is
    only: bool  # the run has no other kernel
    alone: bool  # nor another of this kind without counterpart
    shape: tuple[tuple[int, ...], tuple[int, ...]]


def _candidates(run: TracedRun, left: Sequence[KernelTime]) -> list[_Candidate]:
    worth = [time for time in left if run.share(time) >= LEAST_SHARE][:MOST]
    kinds = {id(time): _kind_of(time.kernel.name) for time in worth}
    of_kind = Counter(kinds.values())
    names = Counter(name for time in left for name in set(_operations_of(time)))
    return [
        _Candidate(
            time,
            kinds[id(time)],
            time.total / (time.launches or 1),
            None if run.counted else run.calls(time),
            frozenset(name for name in _operations_of(time) if names[name] == 1),
            len(run.times) == 1,
            of_kind[kinds[id(time)]] == 1,
            (time.kernel.grid, time.kernel.block),
        )
        for time in worth
        if kinds[id(time)] != "random"  # fills the inputs, and does none of the work
    ]


def _kind_of(name: str) -> str:
    if is_matrix_product(name):
        return "product"
    owner = kernel_owner(name)
    return "own" if owner in OWN_CODE else owner


def _operations_of(time: KernelTime) -> tuple[str, ...]:
    """The framework's operation where it made most of the launches."""
    main = 2 * time.operation_launches > time.launches
    return (time.operation,) if main and time.operation is not None else ()


# ---------------------------------------------------------------- what two kernels have in common


def _signs_of(before: _Candidate, after: _Candidate, alike: bool, *, same_program: bool) -> _Signs:
    faster = before.launch_seconds / after.launch_seconds if after.launch_seconds > 0 else 0.0
    signs: set[RoleSign] = set()
    if alike:
        signs.add("name")
    elif not 1 / MOST_FASTER <= faster <= MOST_FASTER:
        return frozenset()
    if before.operations & after.operations:
        signs.add("operation")
    if all(before.shape) and before.shape == after.shape:
        signs.add("shape")
    if before.calls and after.calls and abs(after.calls / before.calls - 1) <= SAME_CALLS:
        signs.add("calls")
    sole = before.only and after.only
    if before.alone and after.alone and before.kind == after.kind and (same_program or (alike and sole)):
        signs.add("alone")
        if sole and before.kind in ("own", *_ONE_ROLE):
            signs.add("only")
    return frozenset(signs)


def _names_alike(own: Sequence[_Candidate], counterparts: Sequence[_Candidate]) -> set[tuple[int, int]]:
    """The places of own code with similar names.

    None where a name is similar to more on one side than on the other: there one became two, or two became one.
    """
    links = {
        (a, b)
        for a, one in enumerate(own)
        for b, two in enumerate(counterparts)
        if one.kind == two.kind == "own" and similar_names(one.time.kernel.name, two.time.kernel.name)
    }
    groups: list[tuple[set[int], set[int]]] = []
    for a, b in links:
        joined: tuple[set[int], set[int]] = ({a}, {b})
        apart = []
        for group in groups:
            if group[0] & joined[0] or group[1] & joined[1]:
                joined = (joined[0] | group[0], joined[1] | group[1])
            else:
                apart.append(group)
        groups = [*apart, joined]
    even = {a for lefts, rights in groups if len(lefts) == len(rights) for a in lefts}
    return {(a, b) for a, b in links if a in even}


# Words of a kernel's name that say how it does its work, in which type or in which version, and not what it does.
_MANNER_WORDS = """
    kernel kern void cuda gpu hip triton poi per red tem fused fusion global device impl version ver naive basic
    simple baseline opt optimized optimised fast faster slow new old improved final test tile tiled tiling block
    blocked blocking blocktiled blocktiling warptiling vec vectorized vectorised coalesced coalesce coalescing
    uncoalesced unroll unrolled unrolling shared smem mem memory gmem async pipelined buffered float half double int
    bf fp tf bfloat v f u l s
"""
_MANNER = frozenset(_MANNER_WORDS.split())
_DIRECTIONS = {
    "fwd": "",
    "forward": "",
    "bwd": "backward",
    "backward": "backward",
    "grad": "backward",
    "dgrad": "dgrad",
    "wgrad": "wgrad",
}
# Other words for the same work.
_WORK = dict.fromkeys(["sgemm", "dgemm", "hgemm", "bgemm", "igemm", "matmul", "mm", "mmul"], "gemm")
_WORD = re.compile(r"\d+[dD](?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def similar_names(first: str, second: str) -> bool:
    """Whether the names say the same work: most of their words, without those for its manner, type and version.

    >>> similar_names("rms_norm_matrix_kernel(float *, int)", "rms_norm_matrix_kernel_float4(float *, int)")
    True
    >>> similar_names("layer_norm_fwd", "layer_norm_bwd")
    False
    """
    own, direction = _words_of(first)
    counterpart, opposite = _words_of(second)
    if not own or not counterpart or direction != opposite:
        return False
    likeness = len(own & counterpart) / len(own | counterpart)
    nested = own <= counterpart or counterpart <= own
    return likeness > LEAST_LIKENESS or (nested and likeness >= LEAST_LIKENESS)


@lru_cache(maxsize=1024)
def _words_of(name: str) -> tuple[frozenset[str], frozenset[str]]:
    parts = read_signature(name)
    base = parts[-1].text if parts else name.partition("(")[0].partition("<")[0]
    words = [word.lower() for word in _WORD.findall(base)]
    named = frozenset(
        _WORK.get(w, w) for w in words if w not in _MANNER and w not in _DIRECTIONS and not w.isdigit()
    )
    return named, frozenset(_DIRECTIONS[w] for w in words if _DIRECTIONS.get(w))


def renamed_kernels(matched: MatchedKernels) -> Mapping[str, str]:
    """The names of the candidate by those of the baseline, of kernels that are spelled another way there."""
    return {
        pair.baseline.name: pair.candidate.name
        for pair in matched.pairs
        if pair.baseline.name != pair.candidate.name
    }
