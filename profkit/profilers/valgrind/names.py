"""callgrind's name compression: `(12) memcpy` says it once, `(12)` means it from then on."""

from __future__ import annotations

import re

_LEVEL = re.compile(r"'\d+$")
_NUMBERED = re.compile(rb"\((\d+)\)(?:\s+(.*))?$", re.DOTALL)


def without_level(function: str) -> str:
    """The function's name without callgrind's mark of a recursion level: `fib'2` is fib."""
    return _LEVEL.sub("", function)


class Names:
    """Resolves the names of one kind (objects, files or functions), which have numbers of their own."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def resolve(self, text: bytes) -> str:
        """The name that `text`, what stands behind the `=`, means. An unknown number stands for itself."""
        known = self._known.get(text)
        if known is not None:
            return known
        text = text.strip()
        numbered = _NUMBERED.match(text)
        if numbered is None:
            name = text.decode("utf-8", "replace")
        elif numbered[2] is None:
            return self._known.get(text) or text.decode("ascii", "replace")
        else:
            name = numbered[2].strip().decode("utf-8", "replace")
            self._known[b"(%s)" % numbered[1]] = name
            return name
        if len(self._known) < 1_000_000:  # an uncompressed file repeats its names too
            self._known[text] = name
        return name
