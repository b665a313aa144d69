"""A demangled C++ signature read into its parts: the qualified name, its template arguments, its lambdas.

Any text can be read, in time that grows with its length alone: what lies deeper than DEEPEST brackets is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

LONGEST = 20_000  # characters that are looked at: the longest real names have some 10,000
DEEPEST = 24  # brackets in brackets that are read; what lies deeper is left out

_RETURN_TYPE = re.compile(
    r"^(?:(?:static|inline|const|unsigned|signed|void|int|long|short|char|float|double|bool|auto|__global__) )*$"
)
_ANONYMOUS = re.compile(
    r"\(anonymous namespace\)::|<unnamed>::|\{anonymous\}::|_GLOBAL__N_\w*::|`anonymous[^']*'::"
)
_CAST = re.compile(r"\((?:[A-Za-z_][\w:]*(?: \w+)*)\)(?=-?\d)")
_TOKEN = re.compile(
    r"operator ?(?:\(\)|\[\]|<=>|<<=?|>>=?|<=?|>=?|->\*?|[-+*/%^&|~!=]{1,3})"  # brackets that are none
    r"|[\[{](?=lambda\()|'lambda\d*'|::|->|\w[\w$@.]*|\s+|."
)


@dataclass
class NamePart:
    """One step of a qualified name. `args` are its template's, `params` a function's or a lambda's."""

    text: str
    args: list[TypeArgument] | None = None
    params: list[TypeArgument] | None = None


@dataclass
class TypeArgument:
    """What stands between two commas: words, and qualified names as lists of parts."""

    items: list[str | list[NamePart]] = field(default_factory=list)


def read_signature(name: str) -> list[NamePart] | None:
    """The qualified name in a signature, without what stands before and behind it; None where it is no signature."""
    text = plain_name(name)
    return _parts(text) if re.match(r"[A-Za-z_]", text) else None


def plain_name(name: str) -> str:
    """The name on one line without anonymous namespaces and casts, mangled symbols by their last plain name."""
    text = _ANONYMOUS.sub("", " ".join(name[:LONGEST].split()))
    if text.startswith("_Z"):
        text = _of_mangled(text)
    text = re.sub(r"\(bool\)1(?!\d)", "true", re.sub(r"\(bool\)0(?!\d)", "false", text))
    return _CAST.sub("", text)


def _of_mangled(text: str) -> str:
    """The last plain name of an Itanium symbol that nobody demangled: enough to be known by."""
    rest, last = re.sub(r"^_ZN?K?", "", text), ""
    while part := re.match(r"(?:S[t_a]|L)?(\d{1,4})(?=[A-Za-z_])", rest):
        begin, length = part.end(), int(part[1])
        if begin + length > len(rest):
            break
        last, rest = rest[begin : begin + length], rest[begin + length :]
    return last or text


def _parts(text: str) -> list[NamePart] | None:
    """The qualified name of a signature without what stands before and behind it; None where it is no signature."""
    reader = _Reader(_TOKEN.findall(text))
    words = reader.type(DEEPEST)
    places = [number for number, item in enumerate(words.items) if isinstance(item, list)]
    if not places:
        return None
    last = places[-1] if not _plain_words(words) else None
    if last is None or not reader.done:
        return None
    return words.items[last]  # type: ignore[return-value]


def _plain_words(argument: TypeArgument) -> bool:
    """Whether this is text with blanks in it, and not a return type before a name."""
    words = [item for item in argument.items if isinstance(item, list)]
    head, last = words[:-1], words[-1]
    if not head or (len(last) > 1 and not any(part.params is not None for part in last)):
        return False
    before = "".join(f"{part.text} " for item in head for part in item)
    typed = any(part.args is not None for item in head for part in item) or any(
        len(item) > 1 for item in head
    )
    return not (typed or _RETURN_TYPE.match(before))


class _Reader:
    """Reads tokens once, from left to right."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens, self._at = tokens, 0

    @property
    def done(self) -> bool:
        return self._at >= len(self._tokens)

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def type(self, depth: int) -> TypeArgument:
        """Up to a comma or closing bracket that is not its own."""
        argument, joined = TypeArgument(), False
        while (token := self._peek()) and token not in (",", ">", ")", "]", "}"):
            self._at += 1
            if token == "::":
                joined = bool(argument.items) and isinstance(argument.items[-1], list)
            elif token.isspace() or (token in ("const", "volatile", "noexcept") and self._peek() == "::"):
                continue
            elif token[0].isalnum() or token[0] in "_~'" or token.startswith("operator"):
                self._add(argument, NamePart("lambda" if token.startswith("'lambda") else token), joined)
                joined = False
            elif token in "[{" and self._peek().startswith("lambda"):
                self._at += 1
                part = NamePart("lambda")
                self._opened("(", part, depth)
                self._skip("]" if token == "[" else "}")
                self._add(argument, part, joined)
                joined = False
            elif token in "<(" and argument.items and isinstance(argument.items[-1], list):
                self._at -= 1
                self._opened(token, argument.items[-1][-1], depth)
            elif token in "<([{":
                self._skip({"<": ">", "(": ")", "[": "]", "{": "}"}[token])
            else:
                argument.items.append(token)
        return argument

    def _add(self, argument: TypeArgument, part: NamePart, joined: bool) -> None:
        if joined and isinstance(argument.items[-1], list):
            argument.items[-1].append(part)
        else:
            argument.items.append([part])

    def _opened(self, bracket: str, part: NamePart, depth: int) -> None:
        """What stands in the bracket that begins here, if it does."""
        if self._peek() != bracket:
            return
        self._at += 1
        close = ">" if bracket == "<" else ")"
        inside: list[TypeArgument] = []
        if depth <= 0:
            self._skip(close)
        else:
            while not self.done:
                argument = self.type(depth - 1)
                if argument.items:
                    inside.append(argument)
                token = self._peek()
                self._at += 1
                if token == close or token == "":
                    break
        if bracket == "<":
            part.args = inside
        else:
            part.params = inside

    def _skip(self, close: str) -> None:
        """Past the closing bracket, whatever lies before it."""
        open_, level = {">": "<", ")": "(", "]": "[", "}": "{"}[close], 1
        while not self.done and level:
            token = self._peek()
            self._at += 1
            level += (token == open_) - (token == close)
