"""A run's folder on disk: made for one run alone, with a run.json that is written whole or not at all.

The document's shape is the model's: every frozen type becomes an object with its fields, in their order; only
`summaries` is keyed by concern.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import re
import shlex
from datetime import datetime
from pathlib import Path
from typing import cast

from profkit.core.codec import (
    check_schema,
    field_text,
    from_plain_data,
    join_fields,
    json_text,
    read_document,
    to_plain_data,
    valid_text,
)
from profkit.core.errors import UnreadableReport, UsageError, writing
from profkit.core.files.regular import open_regular
from profkit.core.files.safe_folder import (
    chown_to_sudo_user,
    ensure_folder,
    make_folder,
    make_parents,
    write_whole,
)
from profkit.core.types import Json, RunDocument

SCHEMA = "profkit.run/6"
FILE_NAME = "run.json"
SIZE_LIMIT = 256 << 20  # bytes; a document keeps raw samples, some MB: more is none, and would fill memory
NAME_LIMIT = 100  # bytes of a name kept, so that stamp, name, backend and suffix stay below the usual 255


# ---------------------------------------------------------------- the folder


def elsewhere(folder: Path) -> str:
    """Return the fix for a folder that a run cannot be written to."""
    quoted = shlex.quote(str(folder))
    return f"--output FOLDER   (df -h {quoted}; ls -ld {quoted})"


def create_run_folder(base: Path, name: str, backend: str, when: datetime) -> Path:
    """Make `base/20261120-054700-gated_mlp-cpu` with artifacts/ and logs/ inside, and return it.

    Further runs of one name in one second get -2, -3 appended: mkdir decides, so two runs never share a folder.
    Raises UsageError (2) where `base` is no folder, MachineError (3) without the permission or the space.
    """
    stem = f"{when:%Y%m%d-%H%M%S}-{clean_name(name)}-{clean_name(backend)}"
    made = [path for path in (base, *base.parents) if not os.path.lexists(path)]
    with writing(base, elsewhere(base)):
        try:
            make_parents(base)
        except (FileExistsError, NotADirectoryError) as error:
            raise UsageError(f"cannot write runs to {base}: it is not a folder", "--output FOLDER") from error
        chown_to_sudo_user(*made)
        for number in itertools.count(1):
            folder = base / (stem if number == 1 else f"{stem}-{number}")
            with contextlib.suppress(FileExistsError):
                make_folder(folder, ("artifacts", "logs"), 0o700)  # command line and environment: its owner's
                break
    return folder


def clean_name(name: str) -> str:
    """Reduce a user's text to what is safe in a folder's name: letters, digits, dot, dash and underscore.

    >>> clean_name("../../etc/pass wd")
    'etc-pass-wd'
    """
    cleaned = re.sub(r"[^\w.]+", "-", valid_text(name)).strip(".-")
    shortened = cleaned.encode()[:NAME_LIMIT].decode(errors="ignore")
    return shortened.strip(".-") or "run"


def short_path(path: Path) -> str:
    """Return a path relative to the current folder if it lies below that, else as it is."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or in a folder that is gone by now
        return str(path)


# ---------------------------------------------------------------- writing


def write_run(folder: Path, document: RunDocument) -> Path:
    """Write `folder/run.json` whole or not at all, and return its path.

    Only its owner may read it: it has the command. Raises MachineError when it cannot be written (full disk, no
    permission); the former one stays as it was.
    """
    return _write_text(folder, json_text(run_to_json(document)))


class RunWriter:
    """Writes a run's document again and again, as `write_run` does, and encodes only what has changed since.

    A run is written a dozen times, of which most change a field or two, and all of a large one takes 0.1 s.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Of each field its value, which is kept so that no other one has its identity, and its text
        self._known: dict[str, tuple[object, str]] = {}

    def write(self, document: RunDocument) -> Path:
        """Write the document and return its path. Raises MachineError when it cannot be written."""
        texts = [field_text("schema", SCHEMA)]
        for name in _FIELDS:
            value = getattr(document, name)
            known = self._known.get(name)
            if known is None or known[0] is not value:
                known = self._known[name] = value, field_text(name, _plain_field(name, value))
            texts.append(known[1])
        return _write_text(self._folder, join_fields(texts))


def _write_text(folder: Path, text: str) -> Path:
    target = folder / FILE_NAME
    remark = "; what was written before is whole" if target.exists() else ""
    with writing(target, elsewhere(folder), remark):
        ensure_folder(folder)  # the workload may have removed it
        write_whole(target, (text,), sync=True, private=True)
    return target


# The fields in the order in which they are written
_FIRST = ("state", "name", "backend")
_FIELDS = (*_FIRST, *(field.name for field in dataclasses.fields(RunDocument) if field.name not in _FIRST))


def run_to_json(document: RunDocument) -> dict[str, Json]:
    """Convert the document to the shape of schema "profkit.run/6"."""
    return {"schema": SCHEMA, **{name: _plain_field(name, getattr(document, name)) for name in _FIELDS}}


def _plain_field(name: str, value: object) -> Json:
    plain = to_plain_data(value)
    if name != "summaries":
        return plain
    return {str(summary["concern"]): summary for summary in cast("list[dict[str, Json]]", plain)}


# ---------------------------------------------------------------- reading


def read_run(path: Path) -> RunDocument:
    """Read a run's folder or its run.json; unknown fields are ignored, absent ones take their default.

    Raises UnreadableReport with the place in the file for anything that is no whole run document. A run that was
    killed stays `running`.
    """
    file = path / FILE_NAME if path.is_dir() else path
    if not file.is_file():
        what = f"{path} holds no {FILE_NAME}" if path.is_dir() else f"{path} is not a file"
        raise UnreadableReport(f"cannot read a run: {what}")
    return read_document(file, run_from_json, SIZE_LIMIT)


def is_run(path: Path) -> bool:
    """Return whether `path` is a folder with a run.json, or a file that begins like one; never raise."""
    if path.is_dir():
        return (path / FILE_NAME).is_file()
    try:
        if not path.is_file():  # asked first, since opening a pipe would wait for its writer
            return False
        with open_regular(path) as file:
            return re.search(rb'"schema"\s*:\s*"profkit\.run/', file.read(4096)) is not None
    except OSError:
        return False


def run_from_json(data: object) -> RunDocument:
    """Build the document from parsed JSON of this schema.

    Raise UnreadableReport with the place that does not fit.
    """
    body = dict(check_schema(data, SCHEMA, "a run document", "profkit profile -- COMMAND"))
    if isinstance(summaries := body.get("summaries"), dict):
        body["summaries"] = [
            {"concern": key, **value} if isinstance(value, dict) else value
            for key, value in summaries.items()
        ]
    body.setdefault("started", "")
    if isinstance(workload := body.get("workload"), dict):
        body["workload"] = {"name": body.get("name"), "folder": "", **workload}
    return from_plain_data(RunDocument, body)
