"""How an export is parsed: what is refused of any XML, and what an error of the parser means."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pyexpat import ExpatError, ParserCreate, errors
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from profkit.core.errors import UnreadableReport

if TYPE_CHECKING:
    from pyexpat import XMLParserType

EXPORT_AGAIN = "export it again from its .trace: xctrace export --input X.trace --xpath ... --output X.xml"
_CUT = frozenset((errors.XML_ERROR_NO_ELEMENTS, errors.XML_ERROR_UNCLOSED_TOKEN, errors.XML_ERROR_PARTIAL_CHAR,
                  errors.XML_ERROR_UNCLOSED_CDATA_SECTION))  # fmt: skip


class DamagedExport(UnreadableReport):
    """An export that is cut off, or no well-formed XML: unlike for what is hostile, the others may be read without it.

    `reason` is the message without the name of the file at `path`.
    """

    def __init__(self, message: str, fix: str | None = EXPORT_AGAIN, path: Path | None = None) -> None:
        super().__init__(message if path is None else f"{path}: {message}", fix)
        self.path = path
        self.reason = message


@contextmanager
def name_file(path: Path) -> Iterator[None]:
    """Puts the name of the file before what is wrong with it."""
    try:
        yield
    except DamagedExport as error:
        raise error if error.path else DamagedExport(error.reason, error.fix, path) from error
    except UnreadableReport as error:
        raise UnreadableReport(f"{path}: {error.message}", error.fix or EXPORT_AGAIN) from error
    except OSError as error:
        raise UnreadableReport(
            f"{path} cannot be read: {error.strerror}", f"ls -l {shlex.quote(str(path))}"
        ) from error


def new_parser() -> XMLParserType:
    """An expat parser that refuses every DOCTYPE: an export has none, and entities are what bombs are made of."""
    parser = ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse
    return parser


def _refuse(*_: object) -> None:
    raise UnreadableReport("hostile or no export of xctrace: it has a DOCTYPE, which exports never have")


def damage(error: ExpatError | ParseError, rows: int, *, at_end: bool) -> DamagedExport:
    """What an error of the parser means, with how many rows were whole before it."""
    whole = f"after {rows:,} whole row{'' if rows == 1 else 's'}"
    text = errors.messages.get(error.code, "not well-formed")
    if at_end and text in _CUT:
        return DamagedExport(f"cut off {whole}: the export ends in its middle")
    line = error.lineno if isinstance(error, ExpatError) else error.position[0]
    return DamagedExport(f"no well-formed XML at line {line} {whole}: {text}")
