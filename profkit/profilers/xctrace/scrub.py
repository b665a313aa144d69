"""Takes what is private out of exports of xctrace: the Mac's name, the command line, other programs, paths, messages.

The tables stay exports that every reader of them takes: times, labels of encoders, names of functions, counters. Each
process is called by its number, in all files alike. What a table of unknown meaning says in words is taken out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from pyexpat import ExpatError
from typing import IO, TYPE_CHECKING
from xml.sax.saxutils import escape

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular, read_bounded_text
from profkit.profilers.redact import COMMAND, DEVICE, HOST, MESSAGE, PATH, PROCESS, Redactor
from profkit.profilers.xctrace.folder import NOTE_FILES
from profkit.profilers.xctrace.folder import UNEXPORTED as LEFT_OUT
from profkit.profilers.xctrace.profiler import head_of, looks_like_table, looks_like_toc
from profkit.profilers.xctrace.toc import damage_error, new_parser

if TYPE_CHECKING:
    from pyexpat import XMLParserType

ProcessNames = dict[str, set[str]]  # by number of a process what it was called

_PROCESS = re.compile(r"(.*\S)\s+\((\d{1,10})\)", re.DOTALL)  # "Terminal (643)"
_NUMBER = re.compile(r"\((\d{1,10})\)|, pid: (\d{1,10})\)")
_ZERO = "00000000-0000-0000-0000-000000000000"
_UUIDS = ("uuid", "UUID")
# Engineering types whose text is a number, a time, a name of the system's own, or a process, which has a number.
_HARMLESS = re.compile(
    r".*(?:time|duration|latency|weight|percent|decimal|address|count|size|bytes|level|depth|index|core|state|event|"
    r"id|pid|tid|color|identifier)s?|u?int\d*|boolean|process|thread|sentinel|row|kdebug-.*|mach-.*|pmc-.*|"
    r"metal-.*-id|connection-.*|device-session|text-.*|kperf-.*|frame|binary|backtrace|tagged-backtrace"
)
_A_NUMBER = re.compile(r"[-+]?\d[\d.]*(?:[eE][-+]?\d+)?(?: [-+]?\d[\d.]*)*")
_OF_TOC = {"device", "process", "table", "instrument", "key", "run"}


def scrub_file(source: Path, output: Path, redactor: Redactor) -> None:
    """Write a scrubbed copy of an export to `output`, which must not be there yet.

    Raises UnreadableReport for what is cut off, damaged or hostile.
    """
    _rewrite(source, output, _learn_names((source,), redactor), redactor)


def scrub_folder(source: Path, output: Path, redactor: Redactor) -> None:
    """The same for a folder of exports."""
    files = sorted(path for path in source.iterdir() if path.is_file() and _is_export(path))
    names = _learn_names(files, redactor)
    output.mkdir()
    for file in files:
        _rewrite(file, output / file.name, names, redactor)
    for note in sorted((*source.glob(NOTE_FILES), *source.glob(LEFT_OUT))):
        text = read_bounded_text(note, errors="replace")
        (output / note.name).write_text(redactor.text(text), encoding="utf-8")


def _is_export(path: Path) -> bool:
    head = head_of(path)
    return looks_like_table(head) or looks_like_toc(head)


def _learn_names(files: tuple[Path, ...] | list[Path], redactor: Redactor) -> ProcessNames:
    """What each process is called, and what the Mac is."""
    names: ProcessNames = {}

    def start(tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "process":
            match = _PROCESS.fullmatch(attributes.get("fmt", ""))
            name, number = (match[1], match[2]) if match else (attributes.get("name"), attributes.get("pid"))
            if name and number:
                names.setdefault(number, set()).add(name)
        elif tag == "device" and attributes.get("name") not in (None, attributes.get("model")):
            redactor.learn(attributes["name"], HOST)  # people's Macs have names of several words
            redactor.learn_name(attributes["name"], HOST)

    for file in files:
        parser = new_parser()
        parser.StartElementHandler = start
        for _ in _parse_file(file, parser):
            pass
    return names


def _parse_file(path: Path, parser: XMLParserType) -> Iterator[None]:
    """Feed a file, chunk by chunk. Raises UnreadableReport."""
    with open_regular(path) as file:
        while True:
            chunk = file.read(1 << 16)
            try:
                parser.Parse(chunk, not chunk)
            except ExpatError as error:
                fault = damage_error(error, 0, at_end=not chunk)
                raise UnreadableReport(f"{path}: {fault.message}", fault.fix) from error
            except UnreadableReport as error:
                raise UnreadableReport(f"{path}: {error.message}", error.fix) from error
            yield
            if not chunk:
                return


def _rewrite(source: Path, output: Path, names: ProcessNames, redactor: Redactor) -> None:
    with output.open("x", encoding="utf-8", newline="") as file:
        file.write('<?xml version="1.0"?>\n')
        parser = new_parser()
        copy = _ScrubbedCopy(file, names, redactor, toc=looks_like_toc(head_of(source)))
        parser.StartElementHandler, parser.EndElementHandler = copy.start, copy.end
        parser.CharacterDataHandler = copy.text
        for _ in _parse_file(source, parser):
            pass
        file.write("\n")


class _ScrubbedCopy:
    """Writes each element as it comes, with other words where they are private."""

    def __init__(self, file: IO[str], names: ProcessNames, redactor: Redactor, *, toc: bool) -> None:
        self._write, self._names, self._redactor, self._toc = file.write, names, redactor, toc
        self._numbers = {name: number for number, called in names.items() for name in called}
        self._tags: list[str] = []
        self._known = False  # the table that is being read is one whose words are known to be harmless
        self._words: Callable[[str], str] = lru_cache(maxsize=65536)(self._redact)

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._tags.append(tag)
        if tag == "schema":
            self._known = _is_wanted(attributes.get("name", ""))
        changed = self._of_toc(tag, attributes) if self._toc else self._of_table(tag, attributes)
        pairs = "".join(f' {name}="{_escape_attribute(value)}"' for name, value in changed.items())
        self._write(f"<{tag}{pairs}>")

    def end(self, tag: str) -> None:
        self._tags.pop()
        self._write(f"</{tag}>")

    def text(self, text: str) -> None:
        tag = self._tags[-1] if self._tags else ""
        if text.isspace() or tag in ("mnemonic", "name", "engineering-type"):
            self._write(escape(text))
        elif self._toc or self._known or _HARMLESS.fullmatch(tag) or _A_NUMBER.fullmatch(text.strip()):
            self._write(escape(self._words(text)))
        else:
            self._redactor.note(MESSAGE)
            self._write("removed")

    def _of_table(self, tag: str, attributes: Mapping[str, str]) -> dict[str, str]:
        changed = dict(attributes)
        for name in _UUIDS:
            if name in changed:
                changed[name] = _ZERO
        if tag in ("node", "schema", "row", "sentinel"):
            return changed
        if tag == "binary" and changed.get("name") in self._numbers:
            changed["name"] = self._process(self._numbers[changed["name"]])
        words = self._known or _HARMLESS.fullmatch(tag) is not None
        for name in ("fmt", "name", "path"):
            if name in changed and (words or name != "fmt"):
                changed[name] = self._words(changed[name])
            elif name in changed:
                self._redactor.note(MESSAGE)
                changed[name] = "removed"
        return changed

    def _of_toc(self, tag: str, attributes: Mapping[str, str]) -> dict[str, str]:
        changed = {
            name: self._words(value) if tag in _OF_TOC else value for name, value in attributes.items()
        }
        if tag == "device":
            self._redactor.note(DEVICE, int("uuid" in changed))
            self._redactor.note(HOST, int(attributes.get("name") not in (None, attributes.get("model"))))
            changed |= {name: by for name, by in (("uuid", _ZERO), ("name", "Mac")) if name in changed}
        elif tag == "process":
            if changed.get("arguments"):
                self._redactor.note(COMMAND)
                changed["arguments"] = ""
            if "path" in changed:
                self._redactor.note(PATH)
                changed["path"] = f"/process-{changed.get('pid', '')}"
            if "name" in changed:
                changed["name"] = self._process(changed.get("pid", ""))
        return changed

    def _process(self, number: str) -> str:
        self._redactor.note(PROCESS, 1, f"process-{number}")
        return f"process-{number}"

    def _redact(self, text: str) -> str:
        """A text in which each process goes by its number, without paths and what else is known to be private."""
        for match in _NUMBER.finditer(text):
            number = match[1] or match[2]
            for name in self._names.get(number, ()):
                for before, after in (
                    (f"{name} ({number})", " ({0})"),
                    (f"{name}, pid: {number}", ", pid: {0}"),
                ):
                    if before in text:
                        text = text.replace(before, self._process(number) + after.format(number))
                if text.startswith(f"{name} 0x"):  # a thread that is called like its process
                    text = f"process-{number}{text.removeprefix(name)}"
        return self._redactor.text(text)


def _is_wanted(schema: str) -> bool:
    from profkit.profilers.xctrace.report import wanted_schemas  # late: it imports every reader

    return schema in wanted_schemas()


def _escape_attribute(value: str) -> str:
    return escape(value, {'"': "&quot;", "\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})
