"""Runs a program as the interpreter itself would: its `__main__`, arguments, module path and traceback."""

from __future__ import annotations

import builtins
import importlib.machinery
import os
import runpy
import sys
from collections.abc import Sequence
from types import CodeType, ModuleType, TracebackType


def run(words: Sequence[str]) -> None:
    """Run `script args`, `-m module args` or `-c code args` as `__main__`; what it raises passes through."""
    safe = bool(getattr(sys.flags, "safe_path", False) or sys.flags.isolated)
    first, rest = words[0], list(words[1:])
    main = _new_main()
    if first == "-m":
        sys.argv[:] = rest
        _prepend(os.getcwd(), safe)
        _run_module(rest[0], alter_argv=True)
    elif first == "-c":
        sys.argv[:] = ["-c", *rest[1:]]
        _prepend("", safe)
        main.__loader__ = importlib.machinery.BuiltinImporter
        exec(compile(rest[0], "<string>", "exec", dont_inherit=True), main.__dict__)
    elif os.path.isdir(first) or _is_zip(first):
        sys.argv[:] = [first, *rest]
        _prepend(_full(first), False)
        _run_module("__main__", alter_argv=False)
    else:
        sys.argv[:] = [first, *rest]
        _prepend(os.path.dirname(os.path.realpath(first)), safe)
        _run_script(first, main)


def _new_main() -> ModuleType:
    main = ModuleType("__main__")
    vars(main).update(__builtins__=builtins, __annotations__={}, __package__=None)
    sys.modules["__main__"] = main
    return main


def _prepend(folder: str, safe: bool) -> None:
    if not safe:
        sys.path.insert(0, folder)


def _run_script(path: str, main: ModuleType) -> None:
    full = _full(path)
    try:
        with open(path, "rb") as file:
            source = file.read()
    except OSError as error:
        print(
            f"{sys.executable}: can't open file {full!r}: [Errno {error.errno}] {error.strerror}",
            file=sys.stderr,
        )
        sys.exit(2)
    main.__file__ = full
    vars(main)["__cached__"] = None
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", full)
    exec(_code(path, full, source), main.__dict__)


def _code(path: str, full: str, source: bytes) -> CodeType:
    if path.endswith(".pyc"):
        code = importlib.machinery.SourcelessFileLoader("__main__", full).get_code("__main__")
        assert code is not None
        return code
    return compile(source, full, "exec", dont_inherit=True)


def _full(path: str) -> str:
    """The absolute path as the interpreter writes it: with its `./` left in."""
    return os.path.join(os.getcwd(), path)


def _run_module(name: str, alter_argv: bool) -> None:
    # What `python -m` and `python folder` call themselves; private, but there from 3.3 to 3.14.
    runpy._run_module_as_main(name, alter_argv=alter_argv)  # type: ignore[attr-defined]


def _is_zip(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def hide_host() -> None:
    """Let the traceback that Python is about to print begin where the workload begins."""
    shown = sys.excepthook
    own = os.path.dirname(os.path.abspath(__file__))

    def hook(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
        inside = False
        rest = trace
        while rest is not None and (is_own := _folder(rest) == own) >= inside:
            inside, rest = inside or is_own, rest.tb_next
        shown(kind, value.with_traceback(rest if inside else trace), rest if inside else trace)

    sys.excepthook = hook


def _folder(trace: TracebackType) -> str:
    return os.path.dirname(trace.tb_frame.f_code.co_filename)
