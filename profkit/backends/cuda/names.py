"""One kernel, two tools, two spellings: ncu says `<unnamed>::f<2>`, nsys `(anonymous namespace)::f<(int)2>`.

What is counted stands under the name that the trace gave it, so that its share of time and its counters meet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.analysis.kernel_names import same_name
from profkit.core.types import Kernel, Scope

_WORD = re.compile(r"[^<(]*?(\w+)\s*(?:<|\(|$)")
_LONGEST = 20_000  # characters of a name that are looked at


def same_kernels(traced: Sequence[Kernel], counted: Sequence[Kernel]) -> dict[Scope, Scope]:
    """For every counted configuration that is one of the traced the scope of that one.

    By the mangled name where both tools tell it; else by the demangled one, spelled alike; else by its last word, where
    only one of each is left with that word, grid and block.
    """
    found: dict[Scope, Scope] = {}
    free, left = list(dict.fromkeys(traced)), list(dict.fromkeys(counted))
    for key in (_mangled, _spelled, _word):
        pairs: list[tuple[Kernel, Kernel]] = []
        for kernel in left:
            alike = [k for k in free if _may_be(k, kernel) and key(k) is not None and key(k) == key(kernel)]
            if len({k.scope for k in alike}) == 1:
                pairs.append((kernel, alike[0]))
        if key is _word:  # it tells instances of a template apart no more
            pairs = [one for one in pairs if sum(other[1] == one[1] for other in pairs) == 1]
        found |= {kernel.scope: match.scope for kernel, match in pairs}
        left = [kernel for kernel in left if kernel.scope not in found]
        taken = set(found.values())
        free = [kernel for kernel in free if kernel.scope not in taken]
    return found


def _may_be(traced: Kernel, counted: Kernel) -> bool:
    """Whether shape and mangled name, where both tell one, speak against it."""
    if (traced.grid, traced.block) != (counted.grid, counted.block):
        return False
    return traced.mangled is None or counted.mangled is None or traced.mangled == counted.mangled


def _mangled(kernel: Kernel) -> str | None:
    return kernel.mangled


def _spelled(kernel: Kernel) -> str | None:
    return same_name(kernel.name)


def _word(kernel: Kernel) -> str | None:
    """`softmax_warp_forward` of everything around it."""
    name = kernel.name[:_LONGEST].replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    match = _WORD.match(name)
    return match[1] if match is not None else None
