"""Makes recordings of runs small and public, so that answers are tested without a GPU.

    python -m tests.answers.gpu.recordings KEPT FOLDER

`KEPT` is what `python -m tests.answers.trial --gpu --keep KEPT` left. Of each trace what the reader takes is kept, up
to so many kernels; names of machines, paths, environments and identities go. The files are compressed.
"""

from __future__ import annotations

import json
import lzma
import re
import shutil
import sqlite3
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.answers.trial import RAW

MAX_KERNELS = 700
LONG = {
    "adam_each": 8000,
    "rows_one_by_one": 4000,
    "caption_stream": 20000,
    "caption_cached": 3000,
    "load_forecast": 4000,
    "load_forecast_kept": 4000,
    "plankton": 3000,
}  # a step has more kernels, or is not steady before
TIMED = (
    "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS",
)  # fmt: skip
KEPT = (
    *TIMED,
    "StringIds",
    "TARGET_INFO_GPU",
    "META_DATA_EXPORT",
    "ENUM_CUDA_MEM_KIND",
    "ENUM_CUDA_MEMCPY_OPER",
)
LINES = {
    "caption_stream": 4000,
    "caption_cached": 2000,
    "load_forecast_kept": 2000,
}  # of operations.sqlite, where fewer do
_FOLDER = re.compile(r"/(?:tmp|root|home|work)/[\w./-]*/")
_INSTALLED = re.compile(r"/(?:[\w.-]+/)+(?=site-packages/|lib/python3)")
RECORDINGS = Path(__file__).parent / "recordings"


def public_text(text: str) -> str:
    """A text without folders of the machine that it was recorded on."""
    return _INSTALLED.sub("/", _FOLDER.sub("", text))


def shrink_trace(source: Path, target: Path, most: int) -> None:
    """A copy of an SQLite export with what the reader takes, up to so many kernels."""
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "trace.sqlite"
        shutil.copy(source, copy)
        with sqlite3.connect(copy) as data:
            names = [row[0] for row in data.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for name in set(names) - set(KEPT):
                data.execute(f'DROP TABLE "{name}"')
            timed = [name for name in TIMED if name in names]
            kernels = f"SELECT start FROM {TIMED[0]} ORDER BY start LIMIT 1 OFFSET {most}"
            end = data.execute(kernels).fetchone() if TIMED[0] in names else None
            for name in timed if end is not None else ():
                data.execute(f"DELETE FROM {name} WHERE start > ?", end)
            _forget_strings(data, timed)
            data.execute("DELETE FROM META_DATA_EXPORT WHERE name NOT LIKE '%VERSION%'")
            if "TARGET_INFO_GPU" in names:
                data.execute("UPDATE TARGET_INFO_GPU SET uuid = NULL, busLocation = NULL")
        with sqlite3.connect(copy) as data:
            data.execute("VACUUM")
        target.write_bytes(lzma.compress(copy.read_bytes(), preset=9 | lzma.PRESET_EXTREME))


def _forget_strings(data: sqlite3.Connection, timed: list[str]) -> None:
    used: set[int] = set()
    for name in timed:
        columns = {row[1] for row in data.execute(f"PRAGMA table_info({name})")}
        for column in columns & {"demangledName", "shortName", "mangledName", "nameId", "textId"}:
            used.update(row[0] for row in data.execute(f"SELECT DISTINCT {column} FROM {name}") if row[0])
    strings = data.execute("SELECT id, value FROM StringIds").fetchall()
    data.execute("DELETE FROM StringIds")
    kept = [(number, public_text(text)) for number, text in strings if number in used]
    data.executemany("INSERT INTO StringIds VALUES (?, ?)", kept)
    if "NVTX_EVENTS" in timed:
        texts = data.execute("SELECT rowid, text FROM NVTX_EVENTS WHERE text LIKE '%/%'").fetchall()
        changed = [(public_text(text), row) for row, text in texts]
        data.executemany("UPDATE NVTX_EVENTS SET text = ? WHERE rowid = ?", changed)


def shrink_run(text: str, *, trace: bool = False) -> dict[str, Any]:
    """What an answer is made of, out of a run.json; with its `trace` where nsys' own report is not kept."""
    document = json.loads(public_text(text))
    kept = {name: value for name, value in document.items() if name in (*RAW, *(["trace"] if trace else ()))}
    kept["workload"] |= {"folder": "", "python": None}
    kept["facts"] = {}
    for gpu in kept["gpus"]:
        gpu.pop("uuid", None)
    return kept


def main() -> None:
    """Shrink each run of a folder."""
    kept, target = Path(sys.argv[1]), Path(sys.argv[2])
    for run in sorted(kept.glob("*/run.json")):
        folder = target / run.parent.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        artifacts = run.parent / "artifacts"
        traced = (artifacts / "trace.sqlite").is_file()
        document = json.dumps(shrink_run(run.read_text(), trace=not traced))
        (folder / "run.json.xz").write_bytes(lzma.compress(document.encode(), preset=9))
        for name in ("trace", "operations"):
            if (artifacts / f"{name}.sqlite").is_file():
                most = LONG.get(folder.name, MAX_KERNELS)
                most = LINES.get(folder.name, most) if name == "operations" else most
                shrink_trace(artifacts / f"{name}.sqlite", folder / f"{name}.sqlite.xz", most)
        if (artifacts / "stacks.jsonl.operations").is_file():
            said = public_text((artifacts / "stacks.jsonl.operations").read_text())
            (folder / "stacks.jsonl.operations").write_text(said)


if __name__ == "__main__":
    main()
