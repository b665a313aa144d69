"""Which of xctrace's things a file or a folder is: told by what is in it, never by its name."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from profkit.profilers.files import HEAD_BYTES

_ROOT = re.compile(r"<(trace-query-result|trace-toc)[\s/>]")
_LEAD = re.compile(r"\s*(?:<\?xml[^>]{0,200}\?>)?(?:\s|<!--.*?-->|<!DOCTYPE)*<", re.DOTALL)
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DETAIL = re.compile(rb"""<node xpath=["'][^<>]{0,400}/tracks\[""")
_POINTER = b"version https://git-lfs.github.com/spec/"
_RUN = re.compile(r"Trace\d+\.run")
_DOCUMENT = ("form.template", "corespace", "instrument_data", "open.creq", "shared_data")


def looks_like_table(head: bytes) -> bool:
    """True for the XML of `xctrace export --xpath`: tables, or none where nothing matched."""
    return _root(head) == "trace-query-result"


def looks_like_toc(head: bytes) -> bool:
    """True for the XML of `xctrace export --toc`."""
    return _root(head) == "trace-toc"


def is_detail(head: bytes) -> bool:
    """True for an export of what a track of Instruments lists (Leaks, Allocations): rows of attributes, no table."""
    return _DETAIL.search(head[:8192]) is not None


def is_pointer(head: bytes) -> bool:
    """True for what Git LFS leaves in place of a large file."""
    return head.startswith(_POINTER)


def is_document(path: Path) -> bool:
    """True for a folder that is a document of Instruments (`.trace`), finished or not."""
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError:
        return False
    return any(_RUN.fullmatch(name) for name in names) or sum(name in names for name in _DOCUMENT) >= 2


def has_exports(path: Path) -> bool:
    """True for a folder in which some file is an export of xctrace."""
    try:
        return any(_root(head_of(entry)) is not None for entry in path.iterdir() if entry.is_file())
    except OSError:
        return False


def head_of(path: Path) -> bytes:
    """The first 64 KiB; nothing where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""


def _root(head: bytes) -> str | None:
    """The root element that the text begins with, a document type or not: its reader says what is wrong with that."""
    text = head
    encoding = next((name for bom, name in _BOMS if head.startswith(bom)), "utf-8")
    if encoding == "utf-8" and head[:4] in (b"<\0?\0", b"<\0t\0"):
        encoding = "utf-16-le"
    decoded = text[:8192].decode(encoding, "replace").lstrip("\ufeff")
    if _LEAD.match(decoded) is None:
        return None
    found = _ROOT.search(decoded)
    return found[1] if found is not None else None
