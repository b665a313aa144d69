"""The past decided again: what every stored night would have been, by the rules as they are or by others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from profkit.core.errors import UsageError
from profkit.core.types import Replay, Series
from profkit.regression.detection import ConfirmWord, decide_every_night, rule_for
from profkit.regression.history import History
from profkit.regression.nightly.remarks import KIND

_WORDS: dict[str, ConfirmWord] = {"different": "different", "same": "same", "ambiguous": "ambiguous"}


def rehearse(history: History, found: Iterable[Series], settings: Sequence[str] = ()) -> tuple[Replay, ...]:
    """Each series night by night, with its accepted changes and the words of its re-runs.

    `settings`: `nights=2`, `relative=3 %`, ...: for all of these series instead of what rules.yaml says. Raises
    UsageError for one that does not fit.
    """
    told = _settings(settings)
    replays = []
    for series in found:
        key = series.key
        if key.workload.endswith(f"/{KIND}"):
            continue  # trials of the same code against itself have no nights
        overrides: Mapping[str, Mapping[str, object]] = {key.metric: told} if told else {}
        rule = rule_for(key.metric, overrides, key.scope)
        told_again = history.confirmed(key.workload).get(key, {})
        words = {entry: _WORDS[word] for entry, word in told_again.items() if word in _WORDS}
        outcomes = decide_every_night(series, rule, history.accepted(key.workload), words)
        replays.append(Replay(series, outcomes, tuple(f"{name} {value}" for name, value in told.items())))
    return tuple(replays)


def _settings(texts: Sequence[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"--set {text}: there is no value", "--set nights=2")
        found[name.strip()] = _value(value.strip())
    return found


def _value(text: str) -> object:
    if text in ("yes", "no"):
        return text == "yes"
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() and "." not in text else number
