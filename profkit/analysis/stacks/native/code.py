"""What a line of C, C++ or Rust does, by its text and that of the lines around it: clear cases only."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.analysis.stacks.native.column_walks import column_walks_at
from profkit.analysis.stacks.native.functions import function_around, function_constructs
from profkit.analysis.stacks.native.loops import loop_constructs
from profkit.core.types import Construct

ABOVE, BELOW = 2, 6  # lines around a sampled one, in which a search stands
MAX_LOOP = 25  # lines
_COMMENT = re.compile(r"//.*|/\*.*?\*/")
_NAME = r"[A-Za-z_][\w.]*(?:->\w+)*(?:\.\w+)*"
_LEAVES = r"(?:\{[^{}]*\b(?:return|break)\b[^{}]*\}|(?:return\b[^;{}]*|break\s*);|[^;{}]+;\s*break\s*;)"
_TEST = r"(?:[^(){};]|\([^(){};]*\))*"
_BODY = rf"(?:\{{\s*if\s*\((?P<test>{_TEST})\)\s*{_LEAVES}\s*\}}|if\s*\((?P<test2>{_TEST})\)\s*{_LEAVES})"
_EACH = re.compile(
    rf"for\s*\(\s*(?:const\s+)?[\w:<>,\s*&]*?[\s&*](?P<item>\w+)\s*:\s*(?P<of>{_NAME})\s*\)\s*{_BODY}"
)
_INDEX = re.compile(
    r"for\s*\(\s*(?:[\w:]+\s+)*(?P<item>\w+)\s*=\s*0\s*;\s*(?P=item)\s*(?:<|!=)[^;{}]*;\s*"
    rf"(?:\+\+\s*(?P=item)|(?P=item)\s*\+\+|(?P=item)\s*\+=\s*1)\s*\)\s*{_BODY}"
)
_RUST = re.compile(
    rf"for\s+(?:\(\s*\w+\s*,\s*)?&?(?P<item>\w+)\)?\s+in\s+&?(?P<of>{_NAME})(?:\.iter\(\))?(?:\.enumerate\(\))?\s*"
    r"\{\s*if\s+(?P<test>[^{};]*)\s*\{[^{}]*\b(?:return|break)\b[^{}]*\}\s*\}"
)
_CLOSURE = re.compile(
    rf"(?P<of>{_NAME})\s*\.iter\(\)\s*\.(?:find|position|any)\(\s*\|\s*&*(?P<item>\w+)\s*\|\s*(?P<test>[^|{{}};]*==[^|{{}};]*)\)"
)
_FIND_IF = re.compile(
    rf"(?:find_if|any_of)\(\s*(?P<of>{_NAME})(?:\.|->)c?begin\(\)\s*,.*?\]\s*\([^()]*?[\s&](?P<item>\w+)\s*\)[^{{}}]*"
    r"\{\s*return\s+(?P<test>[^;{}]*);?\s*\}"
)
_SORTS = re.compile(
    rf"\b(?:sort|stable_sort)\(\s*(?P<cpp>{_NAME})(?:\.|->)begin\(\)\s*,|\bqsort\(\s*(?P<c>{_NAME})\s*,"
    rf"|(?P<rust>{_NAME})\.sort(?:_unstable)?(?:_by|_by_key)?\("
)
_TAKES_LOCK = re.compile(r"\b(?:unique_lock|lock_guard|scoped_lock)\b|\.lock\(\)|\bpthread_mutex_lock\(")
_ASKS = re.compile(
    r"\s*(?:loop|for\s*\(\s*;\s*;\s*\)|while\s*\(?\s*(?:true|1|!\s*[\w.>:-]+(?:\([\w:]*\))?)\s*\)?)\s*\{"
)
_HAS_WORK = re.compile(r"\bif\b.*(?:\bempty\(\)|is_empty\(\)|\bsize\(\)|pop_front\(\)|\bpop\(\)|\bready\b)")
_BLOCKS = re.compile(r"wait|sleep|yield|recv|park|accept|read\(|poll|select")
_LOOP = re.compile(r"\s*(?:\}\s*)?(?:for|while|loop)\b")


def native_constructs(lines: Sequence[str], number: int) -> tuple[Construct, ...]:
    """Return what line `number` of a file does: a search in a loop or a sort of what the loop adds to.

    >>> native_constructs(["for (auto &p : items) {", "  if (p.key == key) return &p;", "}"], 2)
    (Construct(kind='search', name='items', how='=='),)
    >>> native_constructs(["while (read(x)) {", "  v.push_back(x);", "  std::sort(v.begin(), v.end());", "}"], 3)
    (Construct(kind='sorts', name='v', how='grown'),)
    """
    if not 0 < number <= len(lines):
        return ()
    return (
        *_search(lines, number - 1),
        *_grown_sort(lines, number - 1),
        *_polled_lock(lines, number - 1),
        *column_walks_at(lines, number),
        *_ordered_uses(lines, number - 1),
        *function_constructs(lines, number),
        *loop_constructs(lines, number),
    )


def _joined(lines: Sequence[str], first: int, last: int) -> str:
    return " ".join(_COMMENT.sub("", line).strip() for line in lines[max(0, first) : last])


def _search(lines: Sequence[str], at: int) -> tuple[Construct, ...]:
    for first in range(at, at - ABOVE - 1, -1):
        if first < 0:
            break
        text, own = _joined(lines, first, first + BELOW), len(_joined(lines, first, first + 1))
        for pattern in (_EACH, _INDEX, _RUST, _CLOSURE, _FIND_IF):
            found = pattern.search(text)
            if found is None or found.start() >= max(1, own):
                continue
            if _joined(lines, first, at + 1).strip() and found.end() < len(_joined(lines, first, at)):
                continue  # it is over before the sampled line
            groups = found.groupdict()
            test = groups.get("test") or groups.get("test2") or ""
            if _compares(test, found["item"]):
                return (Construct("search", groups.get("of") or "", "=="),)
    return ()


def _compares(test: str, item: str) -> bool:
    """Return whether a test compares an item with a key: not with a number or a character, and with nothing less."""
    if re.search(r"[|]{2}|[<>]=|!=|'", test) or not re.search(rf"\b{re.escape(item)}\b", test):
        return False
    if re.search(r"\bstrn?c?(?:ase)?cmp\(.*\)\s*==\s*0", test):
        return True
    sides = test.split("==")
    if len(sides) != 2:
        return False
    of_item = [re.search(rf"\b{re.escape(item)}\b", side) is not None for side in sides]
    key = sides[of_item.index(False)] if False in of_item else "0"
    return re.fullmatch(r"\s*[*&]*[A-Za-z_][\w.\->()\[\]&* ]*", key) is not None and not re.fullmatch(
        r"\s*(?:true|false|null|nullptr|NULL|None)\s*", key
    )


_TREE_USED = re.compile(
    r"\b([A-Za-z_]\w*)(?:\s*\[|(?:\.|->)(?:find|at|count|contains|insert|emplace|try_emplace|erase|entry|get|get_mut"
    r"|contains_key|remove|lower_bound|upper_bound)\b)"
)
_BY_ORDER = (
    r"(?:\.|->)(?:lower_bound|upper_bound|equal_range|rbegin|range|range_mut|(?:first|last)_key_value|pop_(?:first|last)|first_entry"
    r"|last_entry)\(|(?:\.|->)begin\(\)\s*(?:->|\))"
)


def _ordered_uses(lines: Sequence[str], at: int) -> tuple[Construct, ...]:
    """Return containers of the line that the file also asks for what comes next, first or last: a hash has no order."""
    names = dict.fromkeys(_TREE_USED.findall(_COMMENT.sub("", lines[at])))
    return tuple(
        Construct("ordered", name)
        for name in names
        if any(re.search(rf"\b{name}(?:{_BY_ORDER})", _COMMENT.sub("", line)) for line in lines)
    )


def _grown_sort(lines: Sequence[str], at: int) -> tuple[Construct, ...]:
    found = _SORTS.search(_COMMENT.sub("", lines[at]))
    if found is None:
        return ()
    name = found["cpp"] or found["c"] or found["rust"]
    head = _loop_around(lines, at)
    if head is None:
        return _sorts_member(lines, at, name)
    inside = "\n".join(_COMMENT.sub("", line) for line in lines[head : at + 1])
    made = re.search(
        rf"[\w>\]&]\s+{re.escape(name)}\s*(?:[({{;=:]|$)", inside[inside.find("{") + 1 :], re.MULTILINE
    )
    cleared = re.search(rf"\b{re.escape(name)}\s*(?:\.clear\(|=[^=])", inside)
    grows = re.search(rf"\b{re.escape(name)}(?:\.|->)(?:push_back|emplace_back|push|insert)\(", inside)
    return (Construct("sorts", name, "grown"),) if grows and not made and not cleared else ()


def _sorts_member(lines: Sequence[str], at: int, name: str) -> tuple[Construct, ...]:
    """Return a member that a method adds one element to, outside of loops, and sorts as a whole behind that."""
    function = function_around(lines, at)
    if function is None or not re.match(r"self\.|this->|m_|\w+_$", name):
        return ()
    adds = re.search(
        rf"\b{re.escape(name)}(?:\.|->)(?:push_back|emplace_back|push|insert)\(.*?\b{re.escape(name)}\b",
        function.body,
        re.DOTALL,
    )
    cleared = re.search(rf"\b{re.escape(name)}\s*(?:\.clear\(|=[^=])", function.body)
    looped = re.search(r"\b(?:for|while|loop)\b", function.body)
    return (Construct("sorts", name, "grown-member"),) if adds and not cleared and not looped else ()


def _polled_lock(lines: Sequence[str], at: int) -> tuple[Construct, ...]:
    """Return a lock that an endless loop takes to see whether there is work, and in which nothing waits."""
    if not _TAKES_LOCK.search(lines[at]):
        return ()
    head = next((n for n in range(at, max(-1, at - 1 - ABOVE), -1) if _ASKS.match(lines[n])), None)
    if head is None:
        return ()
    depth, inside = 0, []
    for line in lines[head : head + MAX_LOOP]:
        inside.append(_COMMENT.sub("", line))
        depth += inside[-1].count("{") - inside[-1].count("}")
        if depth <= 0:
            break
    text = "\n".join(inside)
    polls = depth <= 0 and _HAS_WORK.search(text) and not _BLOCKS.search(text)
    return (Construct("spin", "lock"),) if polls else ()


def _loop_around(lines: Sequence[str], at: int) -> int | None:
    """Return the line of the head of the innermost loop around a line, by its braces; None where none is near."""
    depth = 0
    for number in range(at, max(-1, at - MAX_LOOP), -1):
        line = _COMMENT.sub("", lines[number])
        before = line if number != at else line[: (_SORTS.search(line) or re.match("", line)).start()]  # type: ignore[union-attr]
        depth += before.count("}") - before.count("{")
        if depth < 0:
            if _LOOP.match(line):
                return number
            depth = 0 if re.match(r"\s*(?:\}\s*)?(?:if|else|match)\b", line) or line.strip() == "{" else depth
            if depth < 0:
                return None
    return None
