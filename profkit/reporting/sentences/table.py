"""A table of sentences by the codes of facts, and the values that a sentence can take from its fact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from string import Formatter
from typing import Any, TypeVar, get_type_hints

from profkit.core.formatting import format_figures, format_percent, format_quantity, format_threshold, joined
from profkit.core.types import Fact
from profkit.reporting.sentences.formats import kernel_name, title

Sentence = Callable[..., str]
_Sentence = TypeVar("_Sentence", bound=Sentence)


class SentenceTable(Mapping[str, str | Sentence]):
    """The sentences of some codes.

    A code without values has a text. Any other has a function whose parameters are named as the fact's values: a
    `float` is one of its numbers, a `str` one of its names, and `Parts`, `Quantity` and the others below are made of
    several. A parameter with a default may be missing from the fact.
    """

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self._sentences: dict[str, str | Sentence] = dict(texts or {})

    @classmethod
    def merged(cls, tables: Iterable[SentenceTable]) -> SentenceTable:
        """Return one table with the sentences of several. Raises ValueError for a code that two of them have."""
        whole = cls()
        for table in tables:
            for code, sentence in table.items():
                whole._add(code, sentence)
        return whole

    def add(self, code: str) -> Callable[[_Sentence], _Sentence]:
        """Return the decorator of the function that writes the sentence of a code."""

        def register(function: _Sentence) -> _Sentence:
            self._add(code, function)
            return function

        return register

    def add_each(self, sentence_of: Callable[[str], Sentence], texts: Mapping[str, str]) -> None:
        """Add the sentences of codes that differ in a text alone; `sentence_of` makes the function of a text."""
        for code, text in texts.items():
            self._add(code, sentence_of(text))

    def __iter__(self) -> Iterator[str]:
        return iter(self._sentences)

    def __len__(self) -> int:
        return len(self._sentences)

    def __getitem__(self, code: str) -> str | Sentence:
        return self._sentences[code]

    def write(self, fact: Fact, say: Callable[[Fact], str]) -> str:
        """Return the sentence of a fact, with its parts as `say` writes them.

        It is the code where the table does not have it, or where the fact lacks a value, or has one that is no
        number: a document may say anything.
        """
        sentence = self.get(fact.code, fact.code)
        if isinstance(sentence, str):
            return sentence
        try:
            return sentence(**_arguments(sentence, fact, say))
        except (LookupError, ValueError, TypeError, OverflowError):
            return fact.code

    def _add(self, code: str, sentence: str | Sentence) -> None:
        if code in self._sentences:
            raise ValueError(f"the code {code} has two sentences")
        self._sentences[code] = sentence


class Parts(tuple[str, ...]):
    """The sentences of a fact's parts."""

    __slots__ = ()

    @property
    def first(self) -> str:
        """Return the sentence of the first part."""
        return self[0] if self else "not known"

    @property
    def second(self) -> str:
        """Return the sentence of the second part."""
        return self[1] if len(self) > 1 else "not known"

    @property
    def because(self) -> str:
        """Return all of them behind colons: `: the counters pass was skipped: no time left`."""
        return "".join(f": {part}" for part in self)

    @property
    def rest(self) -> str:
        """Return all but the first behind semicolons."""
        return "".join(f"; {part}" for part in self[1:])


@dataclass(frozen=True)
class Quantity:
    """A number in the unit of the fact."""

    value: float
    unit: str

    @classmethod
    def of_fact(cls, fact: Fact, name: str) -> Quantity:
        """Return the number of this name."""
        return cls(fact.numbers[name], fact.names.get("unit", ""))

    def __str__(self) -> str:
        if self.unit == "instructions/cycle":
            return f"{self.value:.2f}"
        return format_quantity(self.value, self.unit)

    @property
    def signed(self) -> str:
        """Return it with its sign: `+3.5 MiB`."""
        return f"{'+' if self.value > 0 else '-'}{format_quantity(abs(self.value), self.unit)}"


@dataclass(frozen=True)
class JudgedValue(Quantity):
    """The value that a target judges, and how it was measured."""

    how: str = ""  # ` (multiplexed, counted 30.0 % of the time)`

    @classmethod
    def of_fact(cls, fact: Fact, name: str) -> JudgedValue:
        """Return the number of this name, with the quality of the fact."""
        how = fact.names.get("quality", "")
        if "counted" in fact.numbers:
            how += f", counted {format_percent(100 * fact.numbers['counted'])} % of the time"
        return cls(fact.numbers[name], fact.names.get("unit", ""), f" ({how})" if how else "")


class Subject(str):
    """A metric with what it is of: `time of the kernel gemm`."""

    __slots__ = ()

    @classmethod
    def of_fact(cls, fact: Fact, _name: str) -> Subject:
        """Return the subject of a fact about a change."""
        metric, kind, scope = fact.names["metric"], fact.names["kind"], fact.names["scope"]
        if kind == "run" or not scope:
            return cls(metric)
        return cls(f"{metric} of {kernel_name(scope) if kind == 'kernel' else scope}")


class Movement(str):
    """How a metric changed: `time fell by 12.3 %, from 41.2 ms to 36.1 ms`."""

    __slots__ = ()

    @classmethod
    def of_fact(cls, fact: Fact, name: str) -> Movement:
        """Return the movement of a fact about a change."""
        unit, ratio = fact.names["unit"], fact.numbers.get("ratio")
        before, after = fact.numbers["before"], fact.numbers["after"]
        size = ""
        if ratio is not None:
            # Above that a percentage is harder to read than a factor.
            size = (
                f" to {format_figures(ratio)} times as much"
                if ratio >= 3
                else f" by {format_figures(abs(100 * (ratio - 1)))} %"
            )
        return cls(
            f"{Subject.of_fact(fact, name)} {'rose' if after > before else 'fell'}{size}, "
            f"from {format_quantity(before, unit)} to {format_quantity(after, unit)}"
        )


class TargetLimit(str):
    """What a target demands: `< 5 %`."""

    __slots__ = ()

    @classmethod
    def of_fact(cls, fact: Fact, _name: str) -> TargetLimit:
        """Return the threshold of a fact about a target."""
        return cls(format_threshold(fact.names["operator"], fact.numbers["limit"], fact.names["unit"]))


class Risen(str):
    """The titles of the metrics that rose."""

    __slots__ = ()

    @classmethod
    def of_fact(cls, fact: Fact, _name: str) -> Risen:
        """Return the titles of the metrics in the names `risen...`."""
        names = sorted(fact.names.items())
        return cls(joined([title(metric) for risen, metric in names if risen.startswith("risen")]))


def before_part(text: str) -> Sentence:
    """Return the sentence of a text that the fact's first part explains: `more warps would not help: PART`."""

    def sentence(parts: Parts) -> str:
        return f"{text}: {parts.first}"

    return sentence


def at_value(text: str) -> Sentence:
    """Return the sentence of a text with the fact's value in the place of `{}`."""

    def sentence(value: Quantity) -> str:
        return text.format(value)

    return sentence


def of_judged_value(text: str) -> Sentence:
    """Return the sentence of a text with the judged value in the place of `{}`, and how it was measured."""

    def sentence(value: JudgedValue) -> str:
        return f"{text.format(value)}{value.how}"

    return sentence


@dataclass(frozen=True)
class TextWithNames:
    """The sentence of a text with the fact's names in its braces, as they are: `{value}: the regression is gone`.

    A sentence that writes a number, or a name in another form, is a function.
    """

    text: str

    def __call__(self, **names: str) -> str:
        """Return the text with these names."""
        return self.text.format_map(names)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that it needs."""
        return tuple(name for _, name, _, _ in Formatter().parse(self.text) if name)


@cache
def values_of(sentence: Sentence) -> tuple[tuple[str, Any, bool], ...]:
    """Return of each parameter its name, its type, and whether the fact may lack it."""
    if isinstance(sentence, TextWithNames):
        return tuple((name, str, False) for name in sentence.names)
    types = get_type_hints(sentence)
    parameters = signature(sentence).parameters.values()
    return tuple((p.name, types[p.name], p.default is not p.empty) for p in parameters)


def _arguments(sentence: Sentence, fact: Fact, say: Callable[[Fact], str]) -> dict[str, Any]:
    """Return what a sentence needs of a fact. Raises KeyError for a value that the fact lacks."""
    found: dict[str, Any] = {}
    for name, kind, optional in values_of(sentence):
        if kind is Parts:
            found[name] = Parts(map(say, fact.parts))
        elif kind in (float, str):
            values: Mapping[str, Any] = fact.numbers if kind is float else fact.names
            if name in values or not optional:
                found[name] = values[name]
        else:
            found[name] = kind.of_fact(fact, name)
    return found
