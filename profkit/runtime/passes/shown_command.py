"""A command as others may see it: what is known to be harmless stays, all else is `[masked]` where it stood.

`secrets` looks for what has the form or the name of a secret. No list of those is ever complete, so that what leaves
the machine goes the other way round: an argument is shown where both its name and its value are known to be harmless.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from profkit.runtime.passes.secrets import HIDDEN, hide_secrets, is_secret_name, looks_random, mask_command

MASK = "[masked]"
_LONGEST = 4096  # characters: no argument that a person reads is longer
_OWN = "profkit.fronts.pytest_plugin"  # behind -p, where a password may be; profkit itself puts it there
HARMLESS = "PROFKIT_HARMLESS"  # names of options that the user says are harmless; `all`: each argument is

# What an option may hold: anything (the user said so), a harmless word or number, a number, what no secret looks like
# (of a name that is not known: a small or round number, a file), nothing.
_Kind = Literal["any", "word", "number", "unknown", "none"]

# Words that names of harmless options are made of, and what stands alone: subcommands, dtypes, devices, programs.
# Whatever may name a person, a place or a secret (user, key, code, id, login, text) is none of them.
_WORDS = frozenset(Path(__file__).with_name("harmless_words.txt").read_text(encoding="utf-8").split())
# Words of which a name may consist of only beside others: `--model-name`, and not `--name`
_SOLE = {
    "name",
    "local",
    "master",
    "pin",
    "root",
    "project",
    "self",
    "value",
    "values",
    "at",
    "in",
    "from",
    "on",
    "tag",
}
_SOLE |= {"label", "host", "bind"}
# Long options that begin with one sign
_SINGLE = {
    "np",
    "jar",
    "crf",
    "march",
    "mtune",
    "std",
    "preset",
    "threads",
    "size",
    "iters",
    "iterations",
    "steps",
}
_SINGLE |= {"seed", "epochs", "batch", "lr"}
_NOT_SHORT = "pPaAwuUkK"  # letters that stand for passwords, keys and accounts somewhere
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh"}
_MODULES = re.compile(r"python[\d.]*|pypy[\d.]*|torchrun|coverage|accelerate")

_NUMBER = re.compile(
    r"[+-]?(?=[\d.])[\d.]{0,12}(?:e[+-]?\d{1,3})?(?:[,:x/*-][\d.]{1,8}(?:e[+-]?\d{1,3})?){0,11}"
    r"(?:%|[kKmMgGtT]i?[bB]?|[munµ]?s|min|h|d|Hz|[kMG]Hz)?"
)
_LOCAL = re.compile(r"(?:127\.0\.0\.1|0\.0\.0\.0|localhost|::1)(?::\d{1,5})?")
_PART = r"[A-Za-z0-9_+@-]{1,40}"
_ENDINGS = (
    r"py|pyc|pyx|ipynb|sh|bash|js|mjs|ts|jar|rb|pl|php|lua|jl|R|m|c|cc|cpp|cxx|cu|h|hpp|rs|go|java|f90|s|o|a|so|out|exe|bin|"
    r"pt|pth|ckpt|safetensors|gguf|onnx|json|jsonl|ya?ml|toml|ini|cfg|txt|md|csv|tsv|parquet|arrow|h5|npz|npy|log|"
    r"sqlite3?|db|html|xml|svg|png|jpe?g|gif|mp4|wav|zip|gz|tgz|tar|xz|zst|ncu-rep|nsys-rep|qdrep|trace|data|prof"
)
_FILE = re.compile(
    rf"(?:[A-Za-z]:[\\/]|[\\/]|~/)?(?:(?:\.{{1,2}}|\.?{_PART}(?:\.{_PART}){{0,3}})[\\/]){{0,20}}{_PART}(?:\.{_PART}){{0,4}}\.(?:{_ENDINGS})"
    r"(?:::[\w.\[\]-]{1,80}){0,3}"
)
_SCRIPT = re.compile(r"[\w./\\:~+-]{1,300}\.(?:py|sh|js|jar|ipynb|rb|pl|jl)")
_FOLDER = re.compile(rf"\.{{1,2}}|(?:\.{{1,2}}/)?(?:{_PART}/){{1,20}}|\./(?:{_PART}/){{0,20}}{_PART}")
_PUBLIC = re.compile(r"/(?:usr|bin|sbin|lib|lib64|dev|proc|sys)/[\w./+-]{1,100}")
_PROGRAM = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]{0,40}")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]{0,23}(?:[_.:+-][A-Za-z0-9]{1,16}){0,7}")
_MODULE = re.compile(r"[A-Za-z_]\w{0,40}(?:\.[A-Za-z_]\w{0,40}){0,9}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]{0,23}(?:[-_.][A-Za-z0-9]{1,24}){0,9}")
_ASSIGNED = re.compile(r"([+~-]{0,2})([A-Za-z_][\w.-]{0,80})=(.*)", re.DOTALL)
_OPERATOR = re.compile(r"[;&|<>()]{1,3}|\d?>&\d?")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True)
class ShownCommand:
    """The words that are shown, and how many places in them are masked."""

    words: tuple[str, ...]
    masked: int
    whole: bool  # each word is as it was: the line can be typed again

    @property
    def line(self) -> str:
        """Return the words as one line, quoted for a shell; a mask as it is."""
        return joined_words(self.words)


def shown_command(words: Sequence[str]) -> ShownCommand:
    """Return `words` as others may see them; names in $PROFKIT_HARMLESS are shown with their values, `all` shows each
    word.

    What looks like a secret by its own form is masked whatever its name is.
    """
    harmless = frozenset(map(_plain, filter(None, re.split(r"[,\s]+", os.environ.get(HARMLESS, "")))))
    if "all" in harmless:
        shown = [word.replace(HIDDEN, MASK) for word in mask_command(words)[0]]
    else:
        shown = _Reader(harmless).read(
            [word if len(word) <= _LONGEST else MASK for word in words], first=True
        )
    return ShownCommand(tuple(shown), sum(word.count(MASK) for word in shown), list(words) == shown)


def shown_line(words: Sequence[str]) -> str:
    """Return `shown_command` as one line."""
    return shown_command(words).line


def joined_words(words: Sequence[str]) -> str:
    """Join words to one line, quoted for a shell; a mask is kept unchanged."""
    return " ".join(map(_quoted, words))


def line_to_type(words: Sequence[str], instead: str = "COMMAND") -> str:
    """Return the words as a line that does the same once more; `instead`, to be typed, where some of it is not shown.

    So it is, too, where a screen would show another character than the one that stands there.
    """
    shown = shown_command(words)
    return shown.line if shown.whole and all(map(str.isprintable, words)) else instead


def file_to_type(path: str, instead: str) -> str:
    """Return the path, quoted for a shell; `instead` where it is not shown as it is, such as one out of the folder."""
    return shlex.quote(path) if _file(path) == path else instead


def mask_secrets(text: str) -> str:
    """Return the text with a mask for each secret in it that its form or its name tells."""
    return hide_secrets(text, lambda _: MASK)


@dataclass
class _Reader:
    """Goes along the words; `_next` is what the value of the last option may be, where it may have one."""

    harmless: frozenset[str]  # names that the user called harmless
    _next: _Kind | None = None
    _programs: set[str] = field(default_factory=set)
    _option: str = ""

    def read(self, words: Sequence[str], *, first: bool) -> list[str]:
        """Return the words as they are shown; with `first` the first one is the program that was started."""
        shown = []
        for word in words:
            shown.append(self._program(word) if first else self._word(word))
            first = first and _ASSIGNED.fullmatch(word) is not None
        return shown

    def _program(self, word: str) -> str:
        if _ASSIGNED.fullmatch(word) is not None:
            return self._word(word)
        name = re.split(r"[\\/]", word)[-1]
        self._programs.add(name)
        if _PROGRAM.fullmatch(name) is None or looks_random(name):
            return MASK
        below = _is_relative(word) and re.fullmatch(rf"(?:(?:\.|{_PART})/){{0,20}}{_PROGRAM.pattern}", word)
        return word if word == name or below or _PUBLIC.fullmatch(word) else name

    def _word(self, word: str) -> str:
        kind, self._next = self._next, None
        if word in (MASK, HIDDEN):
            return MASK
        if word == _OWN:
            return word
        if word == "--":
            self._next = kind if kind == "none" else None
            return word
        secret = kind == "none" and is_secret_name(self._option)
        if secret or (
            kind in ("none", "unknown") and not word.startswith("-") and _SCRIPT.fullmatch(word) is None
        ):
            return (None if secret else self._value(word, kind or "none", self._option)) or MASK
        if kind is not None and (shown := self._value(word, kind, self._option)) is not None:
            return shown
        if word.startswith("--"):
            return self._long(word)
        if word.startswith("-") and len(word) > 1 and not _is_number(word):
            return self._short(word)
        if (found := _ASSIGNED.fullmatch(word)) is not None and found[3]:
            return self._assigned(found[1], found[2], found[3])
        if kind in ("word", "number"):
            return MASK
        return self._positional(word)

    def _long(self, word: str) -> str:
        name, sign, value = re.match(r"--([^=:]*)([=:]?)(.*)", word, re.DOTALL).groups()  # type: ignore[union-attr]
        if _NAME.fullmatch(name) is None or looks_random(name) or len(name) > 60:
            return MASK
        kind = self._kind(name)
        if not sign:
            self._next, self._option = kind, name
            return word
        return f"--{name}{sign}{self._value(value, kind, name) or MASK}"

    def _short(self, word: str) -> str:
        letter, rest = word[1], word[2:]
        if not rest:
            self._option, self._next = letter, self._short_kind(letter)
            return word
        if letter == "D" and (found := _ASSIGNED.fullmatch(rest)) is not None:
            return f"-D{self._assigned('', found[2], found[3])}"
        name, equals, value = word[1:].partition("=")
        if name in _SINGLE or _plain(name) in self.harmless:
            self._option, self._next = name, None if equals else self._kind(name)
            return f"-{name}={self._value(value, self._kind(name), name) or MASK}" if equals else word
        if (
            re.fullmatch(r"Xm[xsn]\d{1,6}[kKmMgG]?|[a-z]:[a-z]|[OgW][0-3a-z]{0,6}", word[1:])
            and letter not in _NOT_SHORT
        ):
            return word
        if letter in _NOT_SHORT:
            return f"-{letter}{MASK}"
        if re.fullmatch(r"[A-Za-z]{1,2}", rest):  # `-xvf`: the last letter has the value
            self._option, self._next = word[-1], self._short_kind(word[-1])
            return word
        return word if _is_short_number(rest) else f"-{letter}{MASK}"

    def _short_kind(self, letter: str) -> _Kind:
        if letter in self.harmless:
            return "any"
        if letter == "k":
            return "number"
        return "none" if letter in _NOT_SHORT else "word"

    def _assigned(self, sign: str, name: str, value: str) -> str:
        if _NAME.fullmatch(name.strip("_")) is None or looks_random(name):
            return MASK
        return f"{sign}{name}={self._value(value, self._kind(name), name) or MASK}"

    def _kind(self, name: str) -> _Kind:
        if _plain(name) in self.harmless:
            return "any"
        if is_secret_name(name) or (name[:1] in _NOT_SHORT and len(name) == 1):
            return "none"
        if name in _SINGLE:
            return "word"
        parts = [part.lower() for piece in re.split(r"[-_.]+", name) for part in _CAMEL.split(piece) if part]
        known = [re.sub(r"\d+\Z", "", part) in _WORDS or part.isdigit() for part in parts]
        if not parts or not known[-1]:
            return "unknown"
        return "word" if all(known) and (len(parts) > 1 or parts[0] not in _SOLE) else "number"

    def _value(self, value: str, kind: _Kind, name: str) -> str | None:
        """Return the value as it is shown; None where it is not known to be harmless."""
        if kind == "any":
            return hide_secrets(value, lambda _: MASK).replace(HIDDEN, MASK)
        if len(name) == 1 and kind != "none":
            return self._of_letter(value, kind, name)
        if kind in ("word", "number") and (_is_number(value) or _LOCAL.fullmatch(value)):
            return value
        if kind == "unknown":
            return value if _is_plain_number(value) else _file(value)
        if kind != "word" or looks_random(value):
            return None
        parts = value.split(",")
        if all(_WORD.fullmatch(part) or _is_number(part) for part in parts) and len(value) <= 60:
            return value
        return _file(value)

    def _of_letter(self, value: str, kind: _Kind, name: str) -> str | None:
        """Return the value of an option of one letter, whose meaning depends on the program."""
        if name == "c" and self._programs & _SHELLS:
            return _shell_code(value, self.harmless)
        if name == "m" and any(map(_MODULES.fullmatch, self._programs)):
            return value if _MODULE.fullmatch(value) and not looks_random(value) else None
        if _is_short_number(value) or _known_words(value):
            return value
        return _file(value) if kind == "word" else None

    def _positional(self, word: str) -> str:
        if _OPERATOR.fullmatch(word):
            return word
        if _known_words(word) or _MODULES.fullmatch(word):
            self._programs.add(word)
            return word
        shown = word if _is_short_number(word) else _file(word)
        self._programs.add(re.split(r"[\\/]", word)[-1])
        return MASK if shown is None else shown


def _shell_code(code: str, harmless: frozenset[str]) -> str:
    """Return a line for a shell, of which each command is shown as one by itself is; all masked where it is more
    than that.
    """
    reader = shlex.shlex(code.replace("\n", " ; "), posix=True, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, ""
    try:
        words = list(reader)
    except ValueError:
        return MASK
    shown: list[str] = []
    command_reader = _Reader(harmless)
    for word in words:
        if re.fullmatch(r"[;&|]+", word):
            command_reader = _Reader(harmless)
        shown.append(word if _OPERATOR.fullmatch(word) else command_reader._word(word))
    return " ".join(word if _OPERATOR.fullmatch(word) else _quoted(word) for word in shown)


def _quoted(word: str) -> str:
    bare = word.replace(MASK, "x")
    return word if shlex.quote(bare) == bare else shlex.quote(word)


def _plain(name: str) -> str:
    return name.lstrip("-").replace("_", "-").lower()


def _is_number(value: str) -> bool:
    return (
        value != ""
        and len(value) <= 60
        and _NUMBER.fullmatch(value) is not None
        and any(map(str.isdigit, value))
    )


def _is_short_number(value: str) -> bool:
    """Return whether it is a number, and none that may be a PIN or a one-time code: up to five digits, or a round
    one.
    """
    round_one = re.fullmatch(r"\d{1,6}0{3,9}", value) is not None
    return _is_number(value) and (round_one or re.search(r"\d{6}", value) is None)


def _is_plain_number(value: str) -> bool:
    """Return whether it is a number that a person chose: of up to three digits, with a point, round, or a power of
    two.
    """
    if not _is_number(value) or not _is_short_number(value):
        return False
    if not value.isdigit():
        return True
    return len(value) <= 3 or value.endswith("00") or int(value) & (int(value) - 1) == 0


def _known_words(value: str) -> bool:
    parts = re.split(r"[_.,:+-]", value.lower())
    known = all(re.sub(r"\d{1,4}\Z", "", part) in _WORDS for part in parts)
    return known and len(parts) <= 8 and _WORD.fullmatch(parts[0]) is not None


def _is_relative(path: str) -> bool:
    return not path.startswith(("/", "~", "\\")) and ".." not in re.split(r"[\\/]", path) and path[1:2] != ":"


def _file(word: str) -> str | None:
    """Return a file or a folder: of one that is not below the current folder its last name alone. None for what
    is neither.
    """
    parts = re.split(r"[\\/]", word)
    if len(word) > 300 or any(map(looks_random, parts)):
        return None
    if _PUBLIC.fullmatch(word) or (_FOLDER.fullmatch(word) and ".." not in word):
        return word
    shown = word if _is_relative(word) else parts[-1]
    return shown if _FILE.fullmatch(shown) else None
