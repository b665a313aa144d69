"""What functions of C, C++ and Rust do by their text: work that they repeat, copy or compare more than they need.

Clear cases only: each pattern asks for the whole of what it says, and for nothing else that would change it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profkit.core.types import Construct

MAX_FUNCTION = 120  # lines
MAX_LINE = 400  # letters: nobody writes longer ones
_NOISE = re.compile(
    r"//.*|/\*.*?\*/|__attribute__\s*\(\(.*?\)\)|\[\[\w+\]\]|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'"
)
_HEAD = re.compile(
    r"^(?![ \t]*(?:if|for|while|switch|else|return|catch|do|match|loop|namespace|class|enum|union|impl|trait)\b)"
    r"(?P<before>[\w:<>,&*\[\] \t~]*?)\b(?P<name>~?\w+)\s*(?:<[^()]*>)?\((?P<parameters>[^{};]*)\)"
    r"(?P<after>(?:\s|&|\bconst\b|\bnoexcept\b|\boverride\b|\bfinal\b|\bwhere\b[^{};]*)*(?:->[^{}]*)?)\{",
    re.DOTALL,
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_SELF_CALL = r"(?<![\w.>:]){name}\s*\("


@dataclass(frozen=True)
class FunctionText:
    """A function: its name, its parameters as they are written, its lines (from 0), and its body without noise."""

    name: str
    parameters: tuple[str, ...]
    first: int
    last: int
    body: str


def without_noise(text: str) -> str:
    """Return code without comments, with empty texts and characters."""
    return _NOISE.sub(lambda found: '""' if found[0][0] in "\"'" else "", text[:MAX_LINE])


def function_around(lines: Sequence[str], at: int) -> FunctionText | None:
    """Return the function around a line (from 0): the nearest head above it whose braces are still open there."""
    for first in range(at, max(-1, at - MAX_FUNCTION), -1):
        if "(" not in lines[first] or (found := _function_at(lines, first)) is None:
            continue
        if found.last >= at:
            return found
    return None


def function_named(lines: Sequence[str], name: str) -> FunctionText | None:
    """Return the only function of a name that a file defines; None where there are none or several."""
    heads = [
        number
        for number, line in enumerate(lines)
        if re.search(rf"\b{re.escape(name)}\s*(?:<[^()]*>)?\(", line)
    ]
    found = [
        function
        for number in heads
        if (function := _function_at(lines, number)) is not None and function.name == name
    ]
    return found[0] if len(found) == 1 else None


def _function_at(lines: Sequence[str], first: int) -> FunctionText | None:
    text = "\n".join(without_noise(line) for line in lines[first : first + MAX_FUNCTION])
    head = _HEAD.match(text)
    if head is None or not (head["before"].strip() or head["after"].strip()):
        return None  # a call of something that is given a block
    depth, end = 1, head.end()
    while end < len(text) and depth:
        depth += (text[end] == "{") - (text[end] == "}")
        end += 1
    if depth:
        return None
    parameters = tuple(split_arguments(head["parameters"]))
    return FunctionText(
        head["name"], parameters, first, first + text.count("\n", 0, end), text[head.end() : end - 1]
    )


def split_arguments(text: str) -> list[str]:
    """Return the parts of a list that commas separate, those within brackets left together."""
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def parameter_name(parameter: str) -> str:
    """Return the name of a parameter: `x` of `const int &x` and of `x: usize`."""
    written = re.match(r"\s*(?:mut\s+)?&?(?:mut\s+)?(\w+)\s*:(?!:)", parameter)
    if written is not None:
        return written[1]
    words = _WORD.findall(parameter.partition("=")[0])
    return words[-1] if words else ""


def function_constructs(lines: Sequence[str], number: int) -> Iterator[Construct]:
    """Yield what the function around line `number` (from 1), or this line in it, does more of than it needs.

    >>> text = ["long ways(int x, int y) {", "  return ways(x - 1, y) + ways(x, y - 1);", "}"]
    >>> list(function_constructs(text, 2))
    [Construct(kind='overlaps', name='ways', how='(x - 1, y) and (x, y - 1)')]
    """
    function = function_around(lines, number - 1)
    if function is None:
        return
    yield from _overlaps(function)
    yield from _one_of_sorted(lines, number - 1, function)
    yield from _collected(lines, number - 1, function)
    yield from _keys_made(lines, number - 1, function)
    yield from _grown_by_one(lines, number - 1, function)
    yield from _by_value(lines, number - 1, function)
    yield from _copied_to_grow(lines, number - 1, function)


# Anything that a function may leave behind, or may have kept from an earlier call.
_KEPT = re.compile(
    r"\bstatic\b|\]\s*(?:[-+*/|&^%]|<<|>>)?=(?!=)|(?:->|\.)\w+\s*(?:[-+*/|&^%]|<<|>>)?=(?!=)"
    r"|(?:->|\.)(?:push\w*|pop\w*|insert|emplace\w*|erase|remove|clear|swap|append|extend|send|write\w*)\("
    r"|\b(?:printf|fprintf|puts|cout|cerr|println!|print!|rand|swap|read|getline)\b|\bmemo\w*|\bcache\w*",
    re.IGNORECASE,
)


def _overlaps(function: FunctionText) -> Iterator[Construct]:
    """Yield a function without effects that calls itself for arguments which several of its calls reach."""
    names = [parameter_name(parameter) for parameter in function.parameters]
    if not names or any(_is_written_through(parameter) for parameter in function.parameters):
        return
    if _KEPT.search(function.body) or not _changes_own_names_only(function.body, names):
        return
    calls = [
        split_arguments(_to_the_end(function.body, found.end()))
        for found in re.finditer(_SELF_CALL.format(name=re.escape(function.name)), function.body)
    ]
    calls = [call for number, call in enumerate(calls) if call not in calls[:number]]
    for number, one in enumerate(calls):
        for other in calls[:number]:
            if len(one) == len(other) == len(names) and _meet(one, other, names):
                yield Construct(
                    "overlaps", function.name, " and ".join(f"({', '.join(call)})" for call in (other, one))
                )
                return


def _meet(one: Sequence[str], other: Sequence[str], names: Sequence[str]) -> bool:
    """Return whether two calls step through the same arguments: each differs by a step from the own one, or is as in
    the other call.
    """
    steps = 0
    for left, right, name in zip(one, other, names, strict=True):
        # A step by a number, or down from the own argument by what varies: both stay within a small range.
        step = rf"&?{re.escape(name)}(?:\[\d+\.\.\]|\s*[-+]\s*\d+|\s*-\s*(?!>)[\w.\[\]>()-]+)?"
        if left == right:
            continue
        if not (re.fullmatch(step, left) and re.fullmatch(step, right)):
            return False
        steps += 1
    return steps > 0


def _to_the_end(text: str, start: int) -> str:
    """Return the text from behind an opening parenthesis to the one that closes it."""
    depth, end = 1, start
    while end < len(text) and depth:
        depth += (text[end] in "([{") - (text[end] in ")]}")
        end += 1
    return text[start : end - 1]


def _is_written_through(parameter: str) -> bool:
    """Return whether a function may change what its caller has by a parameter."""
    if "&mut" in parameter:
        return True
    rust = re.match(r"\s*(?:mut\s+)?\w+\s*:(?!:)", parameter) is not None or parameter.strip() in (
        "&self",
        "self",
    )
    return not rust and ("&" in parameter or "*" in parameter) and "const" not in parameter


_ASSIGNED = re.compile(
    r"(?<![\w.>\])])(\w+)\s*(?:[-+*/|&^%]|<<|>>)?=(?![=>])|(?:\+\+|--)\s*(\w+)|\b(\w+)\s*(?:\+\+|--)"
)


def _changes_own_names_only(body: str, names: Sequence[str]) -> bool:
    """Return whether each name that a body assigns to is declared in it, or a parameter."""
    changed = {next(filter(None, found.groups())) for found in _ASSIGNED.finditer(body)}
    declared = {
        found[1]
        for found in re.finditer(r"(?:[\w>\]&*]\s+[&*]?|\blet\s+(?:mut\s+)?)(\w+)\s*(?::[^=;]*)?[=;({]", body)
    }
    declared |= {found[1] for found in re.finditer(r",\s*(\w+)\s*=(?!=)", body)}
    return changed <= declared | set(names)


_SORT = re.compile(
    r"\b(?:sort|stable_sort)\(\s*(?P<cpp>\w+)\.begin\(\)\s*,\s*(?P=cpp)\.end\(\)|\bqsort\(\s*(?P<c>\w+)\s*,"
    r"|\b(?P<rust>\w+)\.sort(?:_unstable)?(?:_by|_by_key)?\("
)


def _one_of_sorted(lines: Sequence[str], at: int, function: FunctionText) -> Iterator[Construct]:
    """Yield a sort of the function's own array of which one element alone is used afterwards."""
    found = _SORT.search(without_noise(lines[at]))
    if found is None:
        return
    name = re.escape(found["cpp"] or found["c"] or found["rust"])
    text = "\n".join(without_noise(line) for line in lines[function.first : function.last + 1])
    sorted_at = text.find(found[0])
    before, after = text[:sorted_at], text[sorted_at + len(found[0]) :]
    after = after[after.find(";") + 1 :]
    own = re.search(
        rf"(?:[\w>\]]\s+\*?|\blet\s+mut\s+){name}\s*(?:[({{;=\[]|:[^=]*=)", before[before.find("{") + 1 :]
    )
    if own is None or re.search(rf"[\w>]\s*&\s*{name}\b", before):
        return
    uses = re.findall(rf"\b{name}\b", after)
    element = re.search(rf"\b{name}\s*\[\s*([^\[\]]+)\]", after)
    # Two neighbours are the middle of an even number.
    indexed = re.findall(rf"\b{name}\s*\[\s*(?!\d)[^\[\]]+\]", after)
    sizes = re.findall(rf"\b{name}\s*\.\s*(?:size|len)\(\)", after)
    looped = re.search(rf"\b(?:for|while)\b[^{{;]*?[{{(;][^}}]*?\b{name}\s*\[", after)
    if (
        element is not None
        and ".." not in element[1]
        and not looped
        and 1 <= len(indexed) <= 2
        and len(uses) == len(indexed) + len(sizes)
    ):
        yield Construct("one-of-sorted", found["cpp"] or found["c"] or found["rust"], element[1].strip())


_COLLECT = re.compile(r"\blet\s+(?:mut\s+)?(\w+)\s*(?::\s*Vec<[^=]*)?=.*\.collect(?:::<Vec<.*>>)?\(\)\s*;")


def _collected(lines: Sequence[str], at: int, function: FunctionText) -> Iterator[Construct]:
    """Yield a Vec of Rust that is collected and then gone through once."""
    first = at
    while first > function.first and not re.search(r"[;{}]\s*$", without_noise(lines[first - 1])):
        first -= 1
    text, end = "", first
    while end <= function.last and ";" not in text:
        text += " " + without_noise(lines[end]).strip()
        end += 1
    found = _COLLECT.search(text)
    if (
        found is None
        or (":" not in text.partition("=")[0] and "Vec" not in text)
        or not re.search(r"\biter\b|\.\.|\.map\(|\.filter\(|split|lines\(|chars\(", text)
    ):
        return
    name = re.escape(found[1])
    after = "\n".join(without_noise(line) for line in lines[end : function.last + 1])
    uses = len(re.findall(rf"\b{name}\b", after))
    gone = re.search(rf"\b{name}\s*\.\s*(?:iter|into_iter)\(\)|\bin\s+&?{name}\s*\{{", after)
    # What changes while it is gone through has to be there as a whole; of a sort, `mut` tells.
    if uses == 1 and gone is not None and "mut" not in text.partition("=")[0]:
        yield Construct("collected", found[1])


_LOOKED_UP = (
    r"\b(?P<map>[A-Za-z_][\w.]*?)(?:\s*\[\s*{key}\s*\]"
    r"|(?:\.|->)(?:find|count|at|contains|contains_key|get|get_mut|entry|insert|emplace|try_emplace|remove|erase)"
    r"\(\s*&?(?:mut\s+)?{key}\b(?!\s*[.(]))"
)
# A text by its type, or by what makes it: an `auto` may be a number.
_KEY_MADE = re.compile(
    r"(?:\b(?:std::)?string\s+(?P<typed>\w+)\s*=[^;]*(?:\+|to_string\()"
    r"|\b(?:auto|let)\s+(?:mut\s+)?(?P<made>\w+)\s*(?::\s*String\s*)?=\s*(?:format!|[^;]*(?:\"\"|to_string\()))"
)
_KEY_WITHIN = re.compile(
    r"\b(?P<map>[A-Za-z_][\w.]*?)(?:\[|(?:\.|->)(?:find|count|at|contains|contains_key|get|get_mut|entry)\(&?)\s*"
    r"(?:format!\(|(?:std::)?to_string\(|[\w.>()-]+\s*\+\s*\"\"\s*\+|std::string\([^()]*\)\s*\+)"
)
KEY_NEAR = 4  # lines from where a key is made to where it is looked up


def _keys_made(lines: Sequence[str], at: int, function: FunctionText) -> Iterator[Construct]:
    """Yield the map of a line in which a text is looked up that is put together for it, here or just above."""
    here = without_noise(lines[at])
    within = _KEY_WITHIN.search(here)
    if within is not None:
        yield Construct("key-made", within["map"], str(at + 1))
        return
    for made_at in range(max(function.first, at - KEY_NEAR), at + 1):
        made = _KEY_MADE.search(without_noise(lines[made_at]))
        if made is None:
            continue
        looked_up = re.compile(_LOOKED_UP.format(key=re.escape(made["typed"] or made["made"])))
        for line in range(made_at + 1, min(function.last, made_at + KEY_NEAR) + 1):
            found = looked_up.search(without_noise(lines[line]))
            if found is not None and at in (made_at, line):
                yield Construct("key-made", found["map"], str(made_at + 1))
                return


_ROOM = re.compile(
    r"\b(?:malloc|realloc|new\s+[\w:<>]+)\s*[\[(](?P<size>[^;]*)[\])]\s*;|\b(?P<v>\w+)\.reserve(?:_exact)?\(\s*(?P=v)\.(?:size|len)\(\)\s*\+\s*1\s*\)"
)


def _grown_by_one(lines: Sequence[str], at: int, function: FunctionText) -> Iterator[Construct]:
    """Yield an array that gets room for one more element each time: all of it is moved then."""
    text = "\n".join(without_noise(line) for line in lines[function.first : function.last + 1])
    if not re.search(
        r"\b(?:memcpy|memmove|realloc|copy|copy_n|reserve(?:_exact)?)\(", without_noise(lines[at])
    ):
        return
    for found in _ROOM.finditer(text):
        if found["v"]:
            yield Construct("grows-by-one", found["v"])
            return
        count = re.search(r"([A-Za-z_][\w.>-]*)\s*\+\s*1\b", found["size"])
        if count is None or "len" in found["size"]:
            continue  # a text and its end
        counted = re.escape(count[1])
        if re.search(
            rf"\+\+\s*{counted}|{counted}\s*(?:\+\+|\+=\s*1\b|=\s*{counted}\s*\+\s*1\b)|\[\s*{counted}\+\+",
            text,
        ):
            yield Construct("grows-by-one", count[1])
            return


_SCALARS = re.compile(
    r"^(?:const\s+)?(?:(?:unsigned|signed|int|char|long|short|bool|float|double|auto|void|size_t|ssize_t|ptrdiff_t|std::size_t"
    r"|(?:std::)?u?int\d+_t|std::string_view|string_view|(?:std::)?span<.*>|std::byte|\w*(?:iterator|Iterator))\s*)+\w*$"
)


def _by_value(lines: Sequence[str], at: int, function: FunctionText) -> Iterator[Construct]:
    """Yield each function of C or C++ that a line calls and that takes a struct or container by value."""
    here = without_noise(lines[at])
    for name in dict.fromkeys(re.findall(r"\b([A-Za-z_]\w*)\s*\(", here)):
        called = function_named(lines, name) if name != function.name else None
        for parameter in called.parameters if called is not None else ():
            declared = parameter.partition("=")[0].strip()
            if re.search(r"[&*\[:](?!:)(?<!::)", declared) or "..." in declared or _SCALARS.match(declared):
                continue
            if re.fullmatch(r"(?:const\s+)?(?:struct\s+)?[\w:]+(?:<.*>)?\s+\w+", declared):
                yield Construct("by-value", name, declared.removeprefix("const "))
                break


# A container that begins as a copy of another one, and what adds one element to it.
_COPY = re.compile(
    r"\blet\s+mut\s+(?P<rust>\w+)\s*(?::[^=]*)?=\s*(?P<of>[\w.&*]+?)\.(?:clone|to_vec|to_owned)\(\)\s*;"
    r"|(?:\bauto|>|\bstring|\bPath)\s+(?P<cpp>\w+)\s*(?:=\s*|\(|\{)(?P<from>[A-Za-z_][\w.>-]*)\s*[)}]?\s*;"
)
_ADDS = (
    r"\b{name}\s*\.\s*(?:push(?:_back|_front)?|emplace_back|extend)\("  # no text, which has a way of its own
)
_NEAR = 6  # lines from the copy to what adds to it


def _copied_to_grow(lines: Sequence[str], at: int, function: FunctionText) -> Iterator[Construct]:
    """Yield a container that a loop copies whole in order to add an element, at the line of either."""
    for first in range(max(function.first, at - _NEAR), at + 1):
        copy = _COPY.search(without_noise(lines[first]))
        if copy is None or not _is_in_loop(lines, first, function):
            continue
        name = copy["rust"] or copy["cpp"]
        adds = re.compile(_ADDS.format(name=re.escape(name)))
        last = min(function.last, first + _NEAR)
        added = next((n for n in range(first + 1, last + 1) if adds.search(without_noise(lines[n]))), None)
        if added is not None and first <= at <= added:
            yield Construct("copied-to-grow", name, copy["of"] or copy["from"])
            return


def _is_in_loop(lines: Sequence[str], at: int, function: FunctionText) -> bool:
    depth = len(lines[at]) - len(lines[at].lstrip())
    return any(
        _LOOP_HEAD.match(line) and len(line) - len(line.lstrip()) < depth
        for line in lines[function.first : at]
    )


_LOOP_HEAD = re.compile(r"\s*(?:\}\s*)?(?:for|while|loop)\b")
