"""Which texts of an answer can only be profkit's own; all others may hold words of a program or of a report.

A program names its functions, its files and its kernels, and whoever wrote a report can write anything into it. So
nothing is known by its place alone: a text is profkit's where it is one of profkit's, or is made of its words.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, get_args

from profkit.analysis.judge.rules import RULES
from profkit.analysis.judge.words import change_texts, texts_by_language
from profkit.analysis.metrics.catalogue import all_metrics
from profkit.backends import backend_names
from profkit.core.types import (
    ChangeWord,
    ComparisonOutcome,
    Course,
    Fact,
    PassName,
    PassState,
    Quality,
    RunState,
    ScopeKind,
    SpotKind,
    VerdictWord,
)
from profkit.profilers.registry import PROFILERS
from profkit.profiling.summarize import targets_for
from profkit.reporting.facts import has_sentence

_CLOSED: tuple[Any, ...] = (
    ChangeWord, ComparisonOutcome, Course, PassName, PassState, Quality, RunState, ScopeKind, SpotKind, VerdictWord,
)  # fmt: skip
_GAINS_OF = (
    "the run time", "the CPU time", "the GPU time", "the traced time", "the marked region", "a step",
    "the time of an iteration", "the time of the program",
)  # fmt: skip
_NUMBERS = re.compile(r"(?:(?:[<>]=?|[-+]?[\d.,]+(?:e[-+]?\d+)?)(?: |$))+")  # `< 5 ` of `< 5 %`


def is_own_text(text: str) -> bool:
    """Return whether a text is one of profkit's, with numbers before it or alone: `fail`, `< 5 %`."""
    return _NUMBERS.sub("", text, count=1) in _phrases()


def is_own_fact(fact: Fact) -> bool:
    """Return whether a fact's sentence is profkit's, with all names in it; numbers say nothing by themselves."""
    names = all(is_own_text(name) for name in fact.names.values())
    return names and has_sentence(fact.code) and all(map(is_own_fact, fact.parts))


@lru_cache(maxsize=1)
def _phrases() -> frozenset[str]:
    metrics = all_metrics()
    targets = [target.name for name in backend_names() for target in targets_for(name)]
    # A change is named by its rule, and by the case of it: `linear-search.remove`.
    named = (name.partition(".")[0] for texts in texts_by_language().values() for name in texts)
    rules = [*(rule.name for rule in RULES), *named]
    words = [word for closed in _CLOSED for word in get_args(closed)]
    units = [metric.unit for metric in metrics if metric.unit]
    own = ("", *words, *(metric.name for metric in metrics), *units, *targets, *rules, *_GAINS_OF, *PROFILERS)
    return frozenset((*own, *change_texts()))
