"""Replaces what is private in the records of an .ncu-rep by as many other bytes: nothing in them moves.

A cubin is a program with tables of offsets into itself, so a path in its line table may change but not grow. Each
folder becomes one of the same shape (`/home/ann/net` -> `/xxxx/xxx/xx1`), the same one wherever it stands, so that a
line table still finds its source file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from profkit.profilers.ncu.blocks import LENGTH, Buffer, MalformedMessage, ReportMessage, read_fields
from profkit.profilers.private_forms import mask_shares, replace_addresses, replace_relative
from profkit.profilers.redact import PATH, TOKEN, Redactor
from profkit.runtime.passes.secrets import hide_secrets

_DEEPEST = 12
_PART = rb"[A-Za-z0-9_.+@%~() -]"
_WORD = rb"[A-Za-z0-9_.+@%~-]"
# In a binary a path stands after a NUL or another byte that belongs to no word; after `-I` and the like too.
_FURTHER = rb"(?:[\\/]{1,2}" + _WORD + rb"+)*"
_PATH = rb"(?:(?<![\w:/.\\~-])|(?<=-[ILoB]))(?:/" + _WORD + rb"{2,}){2}(?:/" + _WORD + rb"+)*/?"
# Any six bytes of machine code may look like `/ab/cd`, so in a binary it takes ten, and an end as texts have one.
_PATH_IN_BINARY = rb"(?=[^\x00-\x20]{10})" + _PATH + rb"(?=[\x00-\x20\"'])"
# Where people live no length and no letter before it matters: a number in front of a name may look like one.
_HOME = rb"/(?:home|Users|root|export/home)/"
_WINDOWS_HOME = rb"[A-Za-z]:[\\/]{1,2}(?:Users|Documents and Settings)[\\/]{1,2}"
_HOMES_IN_TEXT = rb"(?<![\w:/.\\~-])" + _HOME + rb"[^\s\"'<>|:;,()]+"
_HOMES_IN_BINARY = b"(?:" + _HOME + b"|" + _WINDOWS_HOME + rb")[^\x00-\x1f\"'<>|\x7f]+"
_DRIVE = rb"(?<![\w/\\.-])[A-Za-z]:[\\/]{1,2}(?:" + _PART + rb"+[\\/]{1,2})+"
_WINDOWS = _DRIVE + _WORD + b"*"
_WINDOWS_IN_BINARY = rb"(?=[^\x00-\x1f]{10})" + _DRIVE + _PART + rb"*(?=[\x00-\x1f\"'])"
# The path of a source by its end, however short its parts: /u/al/x.cu
_SOURCE_END = rb"\.(?:cuh?|hh?|hpp|hxx|cpp|cxx|cc|c|py|ptx|cubin|inl)"
_SOURCE = rb"(?:(?<![\w:/.\\~-])|(?<=-[ILoB]))(?:/" + _WORD + rb"+){2,}" + _SOURCE_END + rb"(?![\w.])"
_SOURCE_IN_BINARY = rb"(?<![\w:/.\\~-])(?:/" + _PART + rb"+){2,}" + _SOURCE_END + rb"(?=[\x00\"'])"
_DRIVE_SOURCE_IN_BINARY = _DRIVE + _PART + rb"*" + _SOURCE_END + rb"(?=[\x00\"'])"
_RUN = re.compile(rb"[\x20-\x7e]{8,}(?=\x00)")  # a text in a binary
_ANY = re.compile(rb"(?:/" + _WORD + rb"{2,}){2,}|" + _HOME + rb"|[A-Za-z]:[\\/]")
_PUBLIC = re.compile(
    rb"/(?:usr/(?:lib|lib64|include|share|bin|local/cuda[\w.-]*)|lib|lib64|bin|proc/self|dev|sys)/|/(?:tmp|dvs)/tmpxft_"
    rb"|[A-Za-z]:[\\/]+Program Files[\\/]+NVIDIA GPU Computing Toolkit[\\/]"
)
# Fields of a ProfileResult that hold nothing but numbers, names of kernels, or bits of the device.
_HARMLESS = {5, 6, 7, 9, 10, 11, 24, 25, 31, 33, 34}
_METRICS = 13  # thousands of small messages of numbers, gone into only where a path stands among them
_SOURCE_OF_KERNEL = 15


class Masker:
    """Replaces bytes in records. It must have seen every record (`learn_sources`) before it writes the first one."""

    def __init__(self, redactor: Redactor, kernels: frozenset[bytes]) -> None:
        self._redactor = redactor
        names = b"\0".join(kernels)
        self._secrets = {
            value.encode(): kind
            for value, kind in redactor.literals().items()
            if not value.startswith("/") and (redactor.strong(value) or value.encode() not in names)
        }
        self._literal = _any_pattern(self._secrets)
        self._folders: dict[bytes, bytes] = {}
        for value in redactor.literals():
            if value.startswith("/"):
                self._folder(value.encode().rstrip(b"/"))
        self._known: tuple[re.Pattern[bytes], re.Pattern[bytes]] | None = None

    def learn_sources(self, data: Buffer, part: ReportMessage) -> None:
        """Know the folders of the source files in a record: a line table lists folders without their files."""
        at, end = part.offset, part.offset + part.size
        for a, b in (
            [(at, end)] if part.kind == "source" else _nested_fields(data, at, end, _SOURCE_OF_KERNEL)
        ):
            for files in _nested_fields(data, a, b, 8):
                for file in _nested_fields(data, *files, 1):
                    for name in _nested_fields(data, *file, 1):
                        self._mask_name(bytes(data[name[0] : name[1]]))

    def record(self, data: Buffer, part: ReportMessage) -> bytes:
        """The record with what is private in it replaced; as long as it was."""
        at, end = part.offset, part.offset + part.size
        whole = bytes(data[at:end])
        copy = bytearray(whole)
        if part.kind == "source":
            self._source(copy, 0, len(copy))
        else:
            for number, wire, a, b in read_fields(whole, 0, len(whole)):
                if wire != LENGTH or (part.kind == "kernel" and number in _HARMLESS):
                    continue
                if part.kind == "kernel" and number == _SOURCE_OF_KERNEL:
                    self._source(copy, a, b)
                elif part.kind != "kernel" or number != _METRICS or _ANY.search(whole, a, b):
                    self._message(copy, a, b, 0)
        self._literals(copy)
        assert len(copy) == part.size
        return bytes(copy)

    def _source(self, copy: bytearray, at: int, end: int) -> None:
        for number, wire, a, b in read_fields(bytes(copy), at, end):
            if wire != LENGTH:
                continue
            if number == 8:
                self._files(copy, a, b)
            else:  # source text, PTX, cubin, symbols
                self._blob(copy, a, b)

    def _files(self, copy: bytearray, at: int, end: int) -> None:
        frozen = bytes(copy)
        for file in _nested_fields(frozen, at, end, 1):
            for number, wire, a, b in read_fields(frozen, *file):
                if wire == LENGTH and number == 1:
                    copy[a:b] = self._mask_name(frozen[a:b])
                    self._count(frozen[a:b], bytes(copy[a:b]))
                elif wire == LENGTH:
                    self._blob(copy, a, b)

    def _message(self, copy: bytearray, at: int, end: int, depth: int) -> None:
        """A message of unknown layout: its texts, however deep."""
        frozen = bytes(copy[at:end])
        try:
            inside = [(a, b) for _, wire, a, b in read_fields(frozen, 0, len(frozen)) if wire == LENGTH]
        except MalformedMessage:
            self._blob(copy, at, end)
            return
        if not inside or depth >= _DEEPEST:  # numbers, or a text that happens to read as such
            if _is_text(frozen):
                self._blob(copy, at, end)
            return
        for a, b in inside:
            self._message(copy, at + a, at + b, depth + 1)

    def _patterns(self) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
        """What finds paths in text and in binaries: the folders that are known (blanks inside or not), else any."""
        if self._known is None:
            folders = sorted((f for f in self._folders if f.count(b"/") > 1), key=lambda folder: -len(folder))
            known = b"".join(_either_slash(f) + b"(?!" + _WORD + b")" + _FURTHER + b"|" for f in folders)
            forms = (
                (_HOMES_IN_TEXT, _SOURCE, _PATH, _WINDOWS),
                (
                    _HOMES_IN_BINARY,
                    _SOURCE_IN_BINARY,
                    _DRIVE_SOURCE_IN_BINARY,
                    _PATH_IN_BINARY,
                    _WINDOWS_IN_BINARY,
                ),
            )
            in_text, in_binary = (re.compile(known + b"|".join(each)) for each in forms)
            self._known = in_text, in_binary
        return self._known

    def _blob(self, copy: bytearray, at: int, end: int) -> None:
        """Text, or a binary with texts in it."""
        before = bytes(copy[at:end])
        in_text, in_binary = self._patterns()
        is_text = _is_text(before)
        pattern = in_text if is_text else in_binary
        after = pattern.sub(lambda found: self._mask(found[0]), before)
        after = self._forms(after) if is_text else _RUN.sub(lambda found: self._forms(found[0]), after)
        if after != before:
            copy[at:end] = after
            self._redactor.note(PATH)

    def _forms(self, text: bytes) -> bytes:
        """The text with secrets, addresses and paths of other forms masked; as long as it was."""
        before = text.decode("latin-1")
        after = hide_secrets(before, self._masked_secret)
        after = replace_addresses(after, _letters_masked, _letters_masked, self._masked_path)
        after = replace_relative(mask_shares(after, self._masked_path), self._masked_path)
        return after.encode("latin-1") if len(after) == len(before) else text

    def _masked_secret(self, secret: str) -> str:
        self._redactor.note(TOKEN)
        return "x" * len(secret)

    def _masked_path(self, path: str) -> str:
        return self._mask(path.encode("latin-1")).decode("latin-1")

    def _literals(self, copy: bytearray) -> None:
        if self._literal is None:
            return
        for found in self._literal.finditer(bytes(copy)):
            copy[found.start() : found.end()] = b"x" * len(found[0])
            self._redactor.note(self._secrets[found[0]])

    def _count(self, before: bytes, after: bytes) -> None:
        if before != after:
            self._redactor.note(PATH, 1, after.decode("utf-8", "replace"))

    def _mask(self, path: bytes) -> bytes:
        if _PUBLIC.match(path):
            return path
        if _plain(path) in self._folders:
            return self._folder(path)
        return self._mask_name(path)

    def _mask_name(self, path: bytes) -> bytes:
        """A file's path with its folder masked; a name without a dot is a folder's, so it is masked too."""
        if _PUBLIC.match(path):
            return path
        cut = max(path.rstrip(b"/\\").rfind(b"/"), path.rstrip(b"/\\").rfind(b"\\"))
        if cut <= 0:
            return path
        if b"." not in path[cut + 1 :].strip(b"."):
            return self._folder(path)
        folder = path[:cut].rstrip(b"/\\")
        return self._folder(folder) + path[len(folder) :]

    def _folder(self, folder: bytes) -> bytes:
        """What stands instead of it, with its own slashes: Windows takes either, and a backslash doubled in quotes."""
        plain = _plain(folder)
        if plain not in self._folders:
            shape = bytearray(re.sub(rb"[^/]", b"x", plain))
            number = str(len(self._folders) + 1).encode()
            if len(number) <= len(shape) - shape.rfind(b"/") - 1:
                shape[len(shape) - len(number) :] = number
            self._folders[plain] = bytes(shape)
        words = filter(None, self._folders[plain].split(b"/"))
        return b"".join(
            part if part[:1] in b"/\\" else next(words) for part in _SLASHES.split(folder) if part
        )


def _letters_masked(text: str) -> str:
    return re.sub(r"[^\s/\\.:@\[\]]", "x", text)


_SLASHES = re.compile(rb"(\\{1,2}|/{1,2})")


def _plain(path: bytes) -> bytes:
    """The path with single forward slashes: the same for every way of writing it."""
    return re.sub(rb"[\\/]{1,2}", b"/", path)


def _either_slash(folder: bytes) -> bytes:
    """A pattern that finds a plain path however its slashes are written."""
    return rb"[\\/]{1,2}".join(map(re.escape, folder.split(b"/")))


def _is_text(data: bytes) -> bool:
    return re.search(rb"[\x00-\x08\x0e-\x1f]", data) is None


def _any_pattern(words: Iterable[bytes]) -> re.Pattern[bytes] | None:
    longest = sorted((word for word in words if word), key=lambda word: -len(word))
    return re.compile(b"|".join(map(re.escape, longest))) if longest else None


def _nested_fields(data: Buffer, at: int, end: int, wanted: int) -> list[tuple[int, int]]:
    return [
        (a, b) for number, wire, a, b in read_fields(data, at, end) if wire == LENGTH and number == wanted
    ]
