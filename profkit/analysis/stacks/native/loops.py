"""What loops of C, C++ and Rust do by their text: pairs, sorting by hand, lists, slots, and what is always the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from profkit.analysis.stacks.native.functions import (
    FunctionText,
    function_around,
    parameter_name,
    without_noise,
)
from profkit.core.types import Construct

_C_HEAD = re.compile(
    r"^\s*(?:\}\s*)?for\s*\(\s*(?:[\w:<>]+\s+)*(?P<item>\w+)\s*=\s*(?P<start>[^;]*);\s*(?P<test>[^;]*);(?P<step>[^{]*)\)"
)
_RUST_HEAD = re.compile(
    r"^\s*(?:'\w+:\s*)?for\s+(?P<item>\w+)\s+in\s+\(?(?P<start>[\w.() +-]+?)\.\.=?(?P<test>[^{]*)\{"
)
_ANY_HEAD = re.compile(r"^\s*(?:\}\s*)?(?:'\w+:\s*)?(?:for|while|loop|do)\b")
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


@dataclass(frozen=True)
class LoopText:
    """A loop around a line: the line of its head (from 0), and of one that counts its variable, start and end."""

    at: int
    head: str
    item: str = ""
    start: str = ""
    test: str = ""


def loops_around(lines: Sequence[str], function: FunctionText, at: int) -> list[LoopText]:
    """Return the loops of a function around a line (from 0), the outermost first; nesting is told by indentation."""
    found: list[LoopText] = []
    depth = len(lines[at]) - len(lines[at].lstrip())
    for number in range(at, function.first, -1):
        line = without_noise(lines[number])
        indented = len(line) - len(line.lstrip())
        if not line.strip() or (number != at and indented >= depth):
            continue
        depth = min(depth, indented)
        if _ANY_HEAD.match(line):
            counted = _C_HEAD.match(line) or _RUST_HEAD.match(line)
            parts = counted.groupdict() if counted is not None else {}
            item, start, test = (parts.get(name, "").strip() for name in ("item", "start", "test"))
            found.append(LoopText(number, line.strip(), item, start, test))
    return found[::-1]


def body_of(lines: Sequence[str], loop: LoopText, function: FunctionText) -> str:
    """Return the text of a loop, head included: to the next line that is indented no further than its head."""
    depth = len(lines[loop.at]) - len(lines[loop.at].lstrip())
    end = loop.at + 1
    while end <= function.last:
        line = lines[end]
        if line.strip() and len(line) - len(line.lstrip()) <= depth:
            break
        end += 1
    return "\n".join(without_noise(line) for line in lines[loop.at : end])


def loop_constructs(lines: Sequence[str], number: int) -> Iterator[Construct]:
    """Yield what the loops around line `number` (from 1) do.

    >>> text = ["void go(node *p) {", "  while (p) {", "    sum += p->value;", "    p = p->next;", "  }", "}"]
    >>> list(loop_constructs(text, 3))
    [Construct(kind='next-node', name='p', how='next')]
    """
    function = function_around(lines, number - 1)
    loops = loops_around(lines, function, number - 1) if function is not None else []
    if function is None or not loops:
        return
    inner = body_of(lines, loops[-1], function)
    yield from _next_node(inner)
    yield from _probes(inner)
    if len(loops) > 1:
        outer = body_of(lines, loops[-2], function)
        yield from _by_hand(loops, outer, inner)
        yield from _all_pairs(loops, outer, inner)
    yield from _always_the_same(lines, function, loops)


_NEXT = re.compile(r"(?<![\w.>])(\w+)\s*=\s*\1\s*->\s*(\w+)\s*(?=[;)])")
_RUST_NEXT = re.compile(
    r"while\s+let\s+Some\(\s*(?:ref\s+)?(\w+)\s*\)\s*=\s*&?(\w+)\b.*?\b\2\s*=\s*&?\1\.(\w+)\b", re.DOTALL
)


def _next_node(inner: str) -> Iterator[Construct]:
    """Yield the pointer that a loop moves on to the next node of a list."""
    found = _NEXT.search(inner)
    if found is not None:
        yield Construct("next-node", found[1], found[2])
    elif (rust := _RUST_NEXT.search(inner)) is not None:
        yield Construct("next-node", rust[1], rust[3])


_PROBE = re.compile(
    r"(?<![\w.>])(\w+)\s*=\s*(?:\(\s*\1\s*\+\s*1\s*\)|\1\.wrapping_add\(1\))\s*[&%]|\+\+(\w+)\s*==\s*\w*(?:capacity|size)\w*"
)


def _probes(inner: str) -> Iterator[Construct]:
    """Yield the index of a loop that goes from slot to slot of a hash table until it finds a key or an empty one."""
    found = _PROBE.search(inner)
    if found is None:
        return
    index = found[1] or found[2]
    slot = re.search(rf"([A-Za-z_]\w*)\s*\[\s*{index}\s*\]\s*(?:\.\w+\s*)?(?:==|!=)", inner)
    # A walk around a ring of work has no end at what is compared with a key.
    leaves = re.search(r"\breturn\b|\bbreak\b|\bwhile\b[^{;]*\[", inner)
    if (
        slot is not None
        and leaves is not None
        and re.search(r"empty|free|used|key|state|occupied|null|\.id\b", inner, re.IGNORECASE)
    ):
        yield Construct("probes", slot[1], index)


_NEIGHBOURS = re.compile(
    r"\b([A-Za-z_][\w.>-]*)\s*\[\s*(\w+)\s*\](?P<field>[\w.]*)\s*[<>]=?\s*\1\s*\[\s*\2\s*[-+]\s*1\s*\](?P=field)"
    r"|\b(?P<other>[A-Za-z_][\w.>-]*)\s*\[\s*(?P<at>\w+)\s*[-+]\s*1\s*\](?P<of>[\w.]*)\s*[<>]=?\s*(?P=other)\s*\[\s*(?P=at)\s*\](?P=of)"
)
_INSERTS = re.compile(
    r"while\s*\(?[^{]*\b(?P<name>\w+)\s*\[\s*(?P<at>\w+)(?:\s*-\s*1)?\s*\][\w.]*\s*[<>]=?\s*[^{]*\{?\s*"
    r"(?P=name)\s*\[\s*(?P=at)(?:\s*\+\s*1)?\s*\]\s*=\s*(?P=name)\s*\[\s*(?P=at)(?:\s*-\s*1)?\s*\]"
)


_SELECTS = re.compile(
    r"\b(?P<name>\w+)\s*\[\s*(?P<at>\w+)\s*\](?P<field>[\w.]*)\s*[<>]\s*(?P=name)\s*\[\s*(?P<best>\w+)\s*\](?P=field)"
    r"[\s){]*(?P=best)\s*=\s*(?P=at)\b"
)


def _by_hand(loops: Sequence[LoopText], outer: str, inner: str) -> Iterator[Construct]:
    """Yield an array that two loops sort: by exchanging neighbours, moving each to its place, seeking the smallest."""
    beside = _NEIGHBOURS.search(inner)
    if beside is not None:
        name, at = beside[1] or beside["other"], beside[2] or beside["at"]
        moved = re.escape(name)
        swaps = re.search(rf"\bswap\(|\bswap\b|\b{moved}\s*\[\s*{at}\s*\]\s*=\s*{moved}\s*\[", inner)
        if swaps is not None and at == loops[-1].item:
            yield Construct("sorts-by-hand", name, "exchanging neighbours")
        return
    moves = _INSERTS.search(inner)
    if moves is not None:
        yield Construct("sorts-by-hand", moves["name"], "moving each element to its place")
    selects = _SELECTS.search(inner)
    if selects is not None and selects["at"] == loops[-1].item and re.search(r"\bswap\b", outer):
        yield Construct("sorts-by-hand", selects["name"], "looking for the smallest of the rest each time")


_SQUARES = re.compile(
    r"\b(\w+)\s*\*\s*\1\s*\+\s*(\w+)\s*\*\s*\2\b|\bhypot\(|\bdistance\w*\(|\bdist\w*\(|\.norm\("
)
_NEAR = re.compile(r"\bif\b[^{;]*<=?\s*(?P<limit>[^{;&|]*?)\s*(?:\)\s*(?:\{|$|[\w+(*-])|&&|\{)", re.MULTILINE)


def _all_pairs(loops: Sequence[LoopText], outer: str, inner: str) -> Iterator[Construct]:
    """Yield what is compared by distance in all pairs, of which those alone count that are near each other."""
    first, second = loops[-2], loops[-1]
    if not (first.item and second.item) or not _SQUARES.search(inner):
        return
    bound = re.sub(rf"\b{first.item}\b", "#", first.test).replace(" ", "")
    same = re.sub(rf"\b{second.item}\b", "#", second.test).replace(" ", "")
    begins = re.sub(r"[\s()]", "", second.start) in (f"{first.item}+1", "0", first.start.replace(" ", ""))
    arrays = set(re.findall(rf"(\w+)\s*\[\s*{first.item}\s*\]", outer)) & set(
        re.findall(rf"(\w+)\s*\[\s*{second.item}\s*\]", inner)
    )
    near = _NEAR.search(inner)
    if near is None or not arrays or not begins or bound != same:
        return
    yield Construct("all-pairs", min(arrays), near["limit"].strip().rstrip(")"))


MOST_ROUNDS = 10_000_000
_NUMBER = re.compile(r"(?:0x[0-9a-fA-F]+|\d+)[uUlL]*$")
_KNOWN_WORDS = frozenset(
    re.findall(
        r"\w+",
        "_ for while if else let mut const auto int unsigned long short char bool double float size_t std uint8_t "
        "uint16_t uint32_t uint64_t int8_t int16_t int32_t int64_t u8 u16 u32 u64 usize i8 i16 i32 i64 f32 f64 as "
        "in true false static_cast sin cos tan exp log log2 log10 pow sqrt fabs abs floor ceil min max push_back "
        "resize reserve M_PI array vector",
    )
)


def _always_the_same(
    lines: Sequence[str], function: FunctionText, loops: Sequence[LoopText]
) -> Iterator[Construct]:
    """Yield a nest of loops around a line that has nothing to do with what the function is given; `how`: its rounds.

    All ends of its loops are numbers, and all that it reads is made within it, or in the function of numbers alone.
    """
    constant = len(loops)
    while constant and (rounds := _rounds(loops[constant - 1])) is not None and rounds > 1:
        constant -= 1
    nest = loops[constant:]
    if not nest or function.name == "main":
        return
    body = body_of(lines, nest[0], function)
    names = set(_WORD.findall(body)) - _KNOWN_WORDS
    inside = _declared(body) | {loop.item for loop in nest}
    outside = {name for name in names - inside if not re.fullmatch(r"[A-Z][A-Z0-9_]+|k[A-Z]\w*", name)}
    head = "\n".join(without_noise(line) for line in lines[function.first : nest[0].at])
    head = head[head.find("{") + 1 :]
    given = {parameter_name(parameter) for parameter in function.parameters}
    if re.search(r"(?<!:)\bstatic\b", head) or re.search(
        r"\b(?:new|malloc|this|self|rand\w*|cin|read\w*)\b", body
    ):
        return
    for name in outside:
        stays = name in _declared(head) and name not in given and _of_numbers(head, name)
        written = re.findall(
            rf"(?<![\w.])\b{re.escape(name)}\b(?!\s*\[[^\]]*\]\s*=(?!=)|\.push_back\()", body
        )
        # Of what a loop around all this made before, only a place to write to is the same each time.
        if not stays or (constant and written):
            return
    if outside or re.search(r"\]\s*=(?!=)|push_back", body):
        yield Construct("always-the-same", function.name, str(prod(_rounds(loop) or 1 for loop in nest)))


def _rounds(loop: LoopText) -> int | None:
    """Return how often a loop goes round whose start and end are numbers; None for any other."""
    end = re.sub(rf"^\s*{re.escape(loop.item)}\s*(<=?|!=)\s*", "", loop.test) if loop.item else ""
    if not (_NUMBER.match(end.strip()) and _NUMBER.match(loop.start.strip())):
        return None
    first, last = (int(text.strip().rstrip("uUlL"), 0) for text in (loop.start, end))
    rounds = last - first + ("<=" in loop.test)
    return rounds if 0 < rounds <= MOST_ROUNDS else None


def _declared(text: str) -> set[str]:
    """Return the names that a piece of code declares."""
    c = re.finditer(
        r"(?:^|[;{(])\s*(?:const\s+)?(?:[A-Za-z_][\w:]*(?:<[^;()]*>)?[\s*&]+)+(\w+)\s*(?:[=;\[{]|\(\d)",
        text,
        re.MULTILINE,
    )
    rust = re.finditer(r"\blet\s+(?:mut\s+)?(\w+)", text)
    return {found[1] for found in (*c, *rust)}


def _of_numbers(head: str, name: str) -> bool:
    """Return whether the declaration of a name, and all that is done with it, has nothing but numbers and types."""
    found = [line for line in re.split(r"[;\n]", head) if re.search(rf"\b{re.escape(name)}\b", line)]
    if len(found) != 1:
        return False
    after = found[0][re.search(rf"\b{re.escape(name)}\b", found[0]).end() :]  # type: ignore[union-attr]
    return not (set(_WORD.findall(after)) - _KNOWN_WORDS - {"vec"})
