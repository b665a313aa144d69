"""What a Python process loads and reads: two versions for which all of that is equal are one program.

A line each in a file per process: `module PATH`, `read PATH`, `list FOLDER`, and `start PROGRAM` for what it starts,
whose own files are not seen.
"""

from __future__ import annotations

import atexit
import os
import sys
from types import FrameType

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_STARTS = ("subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system")
_HERE = os.path.dirname(__file__)
_READS = ("open", "sqlite3.connect", "os.listdir", "os.scandir")


def _is_import(frame: FrameType) -> bool:
    """Return the import system lists each folder of the module path, and so does what measures before it imports."""
    file = frame.f_code.co_filename
    return file.startswith("<frozen importlib") or os.path.dirname(file) == _HERE


def start(folder: str) -> None:
    """Write the lines into a file of `folder` when this process ends."""
    lines: dict[str, None] = {}

    def note(event: str, arguments: tuple[object, ...]) -> None:
        try:
            if event in _STARTS:
                lines[f"start {event}"] = None
            elif event in _READS and not (event == "open" and arguments[2] & _WRITES):  # type: ignore[operator]
                kind = "list" if event in ("os.listdir", "os.scandir") else "read"
                if kind == "read" or not _is_import(sys._getframe(1)):
                    lines[f"{kind} {os.path.abspath(os.fsdecode(arguments[0] or '.'))}"] = None  # type: ignore[arg-type]
        except Exception:  # a file descriptor, or what is no name
            pass

    sys.addaudithook(note)
    atexit.register(_write, folder, lines)


def _write(folder: str, lines: dict[str, None]) -> None:
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    modules = sorted(f"module {os.path.abspath(path)}" for path in files if isinstance(path, str))
    if any(name.startswith("multiprocessing.popen_") for name in sys.modules):
        lines["start multiprocessing"] = None
    try:
        with open(os.path.join(folder, f"{os.getpid()}.txt"), "w", encoding="utf-8") as file:
            file.write("\n".join(line for line in (*modules, *list(lines)) if "\n" not in line))
    except (OSError, ValueError):
        pass  # the program has ended well, and stays so
