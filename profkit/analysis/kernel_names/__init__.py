"""Kernel names as people say them: of a C++ signature of a thousand characters the few that distinguish it from others.

Names come from files of unknown origin: any text gives a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from profkit.analysis.kernel_names.forms import fitting_form, name_forms
from profkit.core.formatting import shorten

WIDTH = 60
_BEHIND = re.compile(r"(?: \(\d[\dx]* of \d[\dx]*\))?(?: #\d+)?$")


def short_name(name: str, width: int = WIDTH) -> str:
    """Return the name without return type, namespaces, parameters and plumbing, in at most `width` characters.

    >>> short_name("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>, char*>(int)")
    'vectorized_elementwise_kernel<4, AddFunctor<float>, char*>'
    """
    form, fits = fitting_form(name, width)
    return form if fits else shorten(form, max(1, width))


def same_name(name: str) -> str:
    """Return the name in the form used to compare tools.

    Tools demangle the same symbol with different spaces, casts and brackets.

    Parameters are left out: one tool prints `T2`, the other the type that it stands for.
    """
    return re.sub(r"\bconst\b|\s+", "", next(name_forms(name))) or name


def labels(names: Iterable[tuple[str, str]], width: int = WIDTH) -> Mapping[tuple[str, str], str]:
    """Return a label of at most `width` characters for every (name, launch configuration), no two the same.

    Where the short name is not enough, grid and block stand behind it, without their ones: `silu (16384 of 128)`.
    """
    pairs = list(dict.fromkeys(names))
    plain = {pair: short_name(pair[0], width) for pair in pairs}
    twins = _several(plain)
    texts = {
        pair: _with_shape(pair, width) if plain[pair] in twins and pair[1] else plain[pair] for pair in pairs
    }
    twins = _several(texts)
    counts: dict[str, int] = {}
    for (
        pair
    ) in pairs:  # other instances of one template in one shape, distinguished only by what was left out
        label = texts[pair]
        if label in twins:
            counts[label] = counts.get(label, 0) + 1
            number = f" #{counts[label]}"
            texts[pair] = shorten(label, max(1, width - len(number))) + number
    return texts


def narrower(label: str, width: int) -> str:
    """Return a label of `labels` in less room: the signature shortened as one, grid and block behind it kept."""
    suffix = _BEHIND.search(label)
    behind = suffix[0] if suffix is not None else ""
    if len(behind) > width - 8:
        return shorten(label, width)
    head = label.removesuffix(behind)
    left = width - len(behind)
    # a functor without its launcher
    inner = head[2:-1] if head.startswith("…<") and head.endswith(">") else None
    short = f"…<{short_name(inner, left - 3)}>" if inner is not None and left > 8 else short_name(head, left)
    return short + behind


def shape(configuration: str) -> str:
    """Return `132 of 384` for `132x1x1 of 384x1x1`: grid and block without their trailing ones."""
    return " of ".join(re.sub(r"(x1)+$", "", part) for part in configuration.split(" of "))


def _several(texts: Mapping[tuple[str, str], str]) -> set[str]:
    once: set[str] = set()
    return {label for label in texts.values() if label in once or once.add(label)}  # type: ignore[func-returns-value]


def _with_shape(pair: tuple[str, str], width: int) -> str:
    name, configuration = pair
    behind = f" ({shape(configuration)})"
    if len(behind) > width - 8:
        return shorten(short_name(name, width) + behind, width)
    return short_name(name, width - len(behind)) + behind
