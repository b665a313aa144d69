"""Read tables: any YAML file, and a `checks.yaml`, whose rows turn facts about the machine into checks.

device:                                # a part: what is judged from one set of facts
  GPU {index}:                         # a check; {index} is a fact, here and in every text below
  - missing: "{reason}: no counters"   # a row: its state, and the sentence
    when: not path and memory < 1e9    # the first row whose terms all hold gives the check; no row, no check
    fix: "{fix}"
    shows: path version                # the facts that the check carries as its own
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

from profkit.core.types import Check, CheckState

_STATES = frozenset(get_args(CheckState))
_TERM = re.compile(r"(not |known |unknown )?(\w+)(?: ([<>]) (\S+))?")


def load_yaml(path: Path) -> Any:
    """Load a YAML file, with libyaml if PyYAML has it: ten times faster than pure Python."""
    import yaml  # here: it costs 10 ms that `profkit --help` need not pay

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with path.open("rb") as file:
        return yaml.load(file, Loader=loader)


_load_once = lru_cache(maxsize=16)(load_yaml)


def judge_rows(table: Path, part: str, *found: object) -> Iterator[Check]:
    """Yield the checks of one part of a `checks.yaml` for the facts in `found`: mappings, or objects with fields.

    A fact that is None is an empty text in a sentence; an empty fix, or an empty fact to show, becomes None.
    Raises KeyError for a fact that is not in `found`, so that a wrong name in a table does not pass for a `no`.
    """
    facts: dict[str, Any] = {}
    for source in found:
        facts.update(source if isinstance(source, Mapping) else vars(source))
    texts = {name: "" if value is None else value for name, value in facts.items()}
    for name, rows in _load_once(table)[part].items():
        terms = ((row, row["when"].split(" and ") if "when" in row else ()) for row in rows)
        row = next((row for row, when in terms if all(_term_holds(term, facts) for term in when)), None)
        if row is not None:
            [state] = _STATES.intersection(row)
            shown = {fact: str(texts[fact]) or None for fact in row.get("shows", "").split()}
            fix = row.get("fix", "").format_map(texts) or None
            yield Check(name.format_map(texts), state, row[state].format_map(texts), fix, **shown)


def _term_holds(term: str, facts: Mapping[str, Any]) -> bool:
    match = _TERM.fullmatch(term)
    if match is None:
        raise ValueError(f"{term!r} is not a condition")
    before, name, sign, limit = match.groups()
    value = facts[name]
    if before in ("known ", "unknown "):
        return (value is None) == (before == "unknown ")
    if sign is not None:
        return value is not None and (value > float(limit) if sign == ">" else value < float(limit))
    return bool(value) != (before == "not ")
