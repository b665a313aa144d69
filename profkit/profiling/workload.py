"""The command as the user typed it: can it be started, what is it called, which Python runs it, what does it read."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from profkit.backends.passes import head_of
from profkit.core.errors import MachineError, UsageError
from profkit.core.git import CHANGES, git_command, git_environment
from profkit.core.types import Revision, Workload
from profkit.runtime.passes.command import find_interpreter, reads_program_from_input

CALLER = "-"  # what profkit itself was given
MOST_INPUT = 1 << 30  # of the caller's input, which is kept in a file while the run goes on
_PIECE = 1 << 20


def describe_workload(command: Sequence[str], name: str | None = None, stdin: str | None = None) -> Workload:
    """The workload that `command` is, with `stdin` (a file, or "-") as its standard input.

    Raises UsageError where it cannot be started at all, or would not find what it reads.
    """
    if not command:
        raise UsageError(
            "no workload: put its command after `--`", "profkit profile -- python your_script.py"
        )
    program = command[0]
    if not program.strip():
        raise UsageError(
            f"the workload's command is empty: {program!r}", "profkit profile -- python your_script.py"
        )
    if shutil.which(program) is None:
        try:
            mode = os.stat(program).st_mode
        except PermissionError as error:
            raise UsageError(f"the workload {program} cannot be reached: {error.strerror}") from error
        except (OSError, ValueError):
            mode = 0
        if stat.S_ISDIR(mode):
            raise UsageError(f"the workload {program} is a folder, not a command")
        if mode:
            raise UsageError(f"the workload {program} is not executable", f"chmod +x {shlex.quote(program)}")
        raise UsageError(f"the workload {program} is not there: no such command on PATH and no such file")
    try:
        folder = os.getcwd()
    except OSError as error:
        raise UsageError("the folder you are in is gone", "cd to one that exists") from error
    check_input(command, stdin)
    name = name or default_name(command, stdin)
    return Workload(tuple(command), name, folder, find_interpreter(command), stdin)


def default_name(command: Sequence[str], stdin: str | None = None) -> str:
    """`python -O bench/x.py --n 3` is called `x`, `python -m pkg.mod` `mod`, `./prog --fast` `prog`."""
    if stdin is not None and stdin != CALLER and reads_program_from_input(command):
        return Path(stdin).stem
    if find_interpreter(command) is not None:
        for position, word in enumerate(command[1:], start=1):
            if word == "-m" and position + 1 < len(command):
                return command[position + 1].rpartition(".")[2]
            if word == "-c":
                return "python-c"
            if word.endswith(".py"):
                return Path(word).stem
    return Path(command[0]).name


_IMPORT = re.compile(r"\b(?:import|from)\s+profkit\b")


def seems_marked(workload: Workload) -> bool:
    """Whether a script of the command names profkit: a guess for a plan that is only printed."""
    for word in (*workload.command, workload.stdin or ""):
        path = Path(workload.folder, word)
        if word.endswith(".py") and path.is_file():
            text = head_of(path).decode("utf-8", "replace")
            if "profkit" in text or "harness" in text:
                return True
    # In `python -c`, and not in a path: a clone is called profkit, too.
    return any(_IMPORT.search(word) is not None for word in workload.command)


# ---------------------------------------------------------------- standard input


def check_input(command: Sequence[str], stdin: str | None) -> None:
    """Raise UsageError for a file that no pass can read, and for a program that would be read from an empty input."""
    if stdin is None and reads_program_from_input(command):
        raise UsageError(
            "the workload reads its program from standard input, which is empty: each pass would need it once more",
            "--stdin FILE, or --stdin - for what profkit is given",
        )
    if stdin is None or stdin == CALLER:
        return
    try:
        mode = os.stat(stdin).st_mode
        if stat.S_ISREG(mode):
            with open(stdin, "rb"):
                return
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"the workload's standard input {stdin!r} cannot be read: {reason}") from error
    raise UsageError(
        f"the workload's standard input {stdin} is no file, so it cannot be read once more for each pass",
        f"--stdin - < {shlex.quote(stdin)}",
    )


@contextlib.contextmanager
def input_file(stdin: str | None) -> Iterator[str | None]:
    """The file behind `--stdin`, None for an empty input. What profkit was given is kept in one until the block ends.

    Raises UsageError where profkit was given none, or more than 1 GiB; MachineError where it cannot be kept.
    """
    if stdin is None or stdin != CALLER:
        yield os.path.abspath(stdin) if stdin is not None else None
        return
    if _is_terminal():
        raise UsageError("--stdin - and standard input is a terminal", "--stdin FILE")
    with contextlib.ExitStack() as last:
        try:
            file = last.enter_context(tempfile.NamedTemporaryFile(prefix="profkit-stdin-"))
            size = 0
            while piece := _read_piece():
                size += file.write(piece)
                if size > MOST_INPUT:
                    raise UsageError(
                        f"more than {MOST_INPUT >> 30} GiB came by standard input", "--stdin FILE"
                    )
            file.flush()
        except OSError as error:
            raise MachineError(f"standard input cannot be kept: {error.strerror}", "--stdin FILE") from error
        yield file.name


def _is_terminal() -> bool:
    try:
        return os.isatty(0)
    except OSError:  # pragma: no cover - isatty is False of a closed one
        return False


def _read_piece() -> bytes:
    try:
        return os.read(0, _PIECE)
    except OSError as error:
        raise UsageError(
            f"--stdin - and there is no standard input: {error.strerror}", "--stdin FILE"
        ) from error


def passed_over() -> bool:
    """Whether profkit was given a file as standard input that holds more, which no workload gets unasked."""
    with contextlib.suppress(OSError):
        there = os.fstat(0)
        return stat.S_ISREG(there.st_mode) and os.lseek(0, 0, os.SEEK_CUR) < there.st_size
    return False


# ------------------------------------------------------------ its commit, as git tells it

# For all questions together: a repository of a million files on a network disk is not waited for
SECONDS = 3.0
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def read_revision(workload: Workload, seconds: float = SECONDS) -> Revision:
    """The commit, branch and state of the repository that the workload's script lies in, else its working folder.

    `reason` says why there is none. Takes `seconds` at most; what is not known by then is None. Never raises.
    """
    if shutil.which("git") is None:
        return Revision(reason="git is not here")
    git = _Git(time.monotonic() + seconds)
    reason = "no folder"
    for folder in _script_folders(workload):
        code, answer = git(folder, "rev-parse", "--is-inside-work-tree")
        if code == 0 and answer == "true":
            return _revision_in(git, folder)
        reason = _refusal_reason(code, answer)
    return Revision(reason=reason)


def _script_folders(workload: Workload) -> list[Path]:
    """Where the script lies, where the command names one that is there; then where it runs."""
    working = Path(workload.folder)
    folders = []
    for word in workload.command[:8]:  # the interpreter, its options, the script
        try:
            path = (working / word).resolve()
            if path.suffix in (".py", ".sh") and path.is_file():
                folders.append(path.parent)
        except (OSError, ValueError, RuntimeError):
            continue
    return list(dict.fromkeys([*folders[:1], working]))


def _revision_in(git: _Git, folder: Path) -> Revision:
    code, commit = git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    known = code == 0 and _COMMIT.fullmatch(commit) is not None
    code, branch = git(folder, "symbolic-ref", "--quiet", "--short", "HEAD")
    name = branch if code == 0 and branch else None
    if not known:
        return Revision(None, name, None, "the repository has no commit yet")
    code, changed = git(folder, *CHANGES)
    late = "its state took too long to tell" if code is None else None
    return Revision(commit, name, bool(changed) if code == 0 else None, late)


def _refusal_reason(code: int | None, answer: str) -> str:
    if code is None:
        return "git did not answer in time"
    if "dubious ownership" in answer:
        return "the repository belongs to somebody else: git asks for its safe.directory"
    if code == 0 or "not a git repository" in answer:
        return "the folder is in no git repository"
    return "git cannot read the repository"


class _Git:
    """Asks git with what time is left. Nothing that the repository configures is started, and nothing is written."""

    def __init__(self, until: float) -> None:
        self._until = until

    def __call__(self, folder: Path, *words: str) -> tuple[int | None, str]:
        """Exit code and what it said; None where it was not done in time or could not be started."""
        left = self._until - time.monotonic()
        if left <= 0:
            return None, ""
        try:
            done = subprocess.run(
                git_command(folder, *words),
                capture_output=True,
                timeout=left,
                env=git_environment(),
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except (OSError, ValueError, subprocess.SubprocessError):
            return None, ""
        output = done.stdout if done.returncode == 0 else done.stderr
        return done.returncode, output.decode("utf-8", "replace").strip()


MOST_FILES = 1000  # beside a script
_CODE = (".py", ".pyx", ".so", ".sh", ".yaml", ".yml", ".toml", ".json", ".cu", ".ptx")


def unchanged_program(
    workload: Workload, revision: Revision | None, packages: Mapping[str, str]
) -> str | None:
    """A text that two runs have in common where the same program did the same work; for a digest, not for people.

    It holds the command, the commit, the versions of packages, and size and date of the files that the command names
    and of the code beside its script. None where that cannot tell: the commit has changes, or there are too many files.
    """
    if revision is not None and revision.commit is not None and revision.dirty is not False:
        return None
    if not workload.command:
        return None
    commit = revision.commit if revision is not None else None
    try:
        files = sorted(_stamps(workload))
    except (OSError, ValueError, RuntimeError):
        return None
    if len(files) > MOST_FILES:
        return None
    what = (
        [*workload.command],
        workload.folder,
        workload.stdin,
        workload.python,
        commit,
        dict(packages),
        files,
    )
    return json.dumps(what, sort_keys=True)


def _stamps(workload: Workload) -> Iterator[tuple[str, int, int]]:
    """Name, size and date in nanoseconds."""
    working = Path(workload.folder)
    named = [working / word for word in workload.command] + [working / str(workload.stdin)]
    for path in named:
        with suppress(OSError, ValueError):  # it is no name of a file
            if path.is_file():
                yield _stamp(path)
    for folder in _script_folders(workload)[:1]:
        with os.scandir(folder) as entries:
            for entry in islice(
                (e for e in entries if e.name.endswith(_CODE) and e.is_file()), MOST_FILES + 1
            ):
                yield _stamp(Path(entry.path))


def _stamp(path: Path) -> tuple[str, int, int]:
    told = path.stat()
    return path.name, told.st_size, told.st_mtime_ns
