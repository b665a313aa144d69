"""A workload's command: which Python runs it, and the same program under one of our hosts."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from profkit.core.files.regular import read_start

# of a folder the interpreter itself would load more
HOST_PROGRAM = Path(__file__).with_name("host") / "__main__.py"
HostKind = Literal["cprofile", "tracemalloc", "torch", "jax", "simulation-window"]

_INTERPRETER = re.compile(r"(python|pypy)(\d+(\.\d+)*)?[a-z]*(\.exe)?", re.IGNORECASE)
# Interpreter options that take a value (python --help); -c and -m end the options
_VALUE_OPTIONS = frozenset("WX")
_NOTHING_TO_RUN = frozenset("hV?")
# Programs that start the rest of their command line. What stands before the Python in it is kept as it is.
_ENVIRONMENTS = frozenset(
    {"uv", "poetry", "pipenv", "pdm", "hatch", "rye", "conda", "mamba", "micromamba", "pixi"}
)
_ASK_SECONDS = 20.0  # that an interpreter may take to answer
_LAUNCHERS = _ENVIRONMENTS | {"env", "nice", "ionice", "taskset", "numactl", "setarch", "stdbuf", "timeout"}
_LAUNCHERS |= {"time", "chrt", "setsid", "nohup", "xvfb-run"}
_LAUNCHERS |= {"arch", "caffeinate", "taskpolicy"}  # of macOS


@dataclass(frozen=True)
class _PythonCommand:
    """A command that runs Python: what comes before the interpreter's options, the options, the program."""

    launcher: tuple[str, ...]  # with the interpreter at its end
    options: tuple[str, ...]
    program: tuple[str, ...]  # script args, -m module args, -c code args, - args


def host_command(
    command: Sequence[str], kind: HostKind, out: Path
) -> tuple[list[str], None] | tuple[None, str]:
    """Return the command that runs the same program under the host `kind`, writing `out`; or the code of a reason."""
    parsed = _parse_command(command)
    if isinstance(parsed, str):
        return None, parsed
    return [*parsed.launcher, *parsed.options, str(HOST_PROGRAM), kind, str(out), "--", *parsed.program], None


START_FOLDER = Path(__file__).with_name("start_up")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "make", "ninja", "xargs", "sudo"})
_INTERACTIVE = "interactive-python"
_MACHINE_CODE = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
_NO_ENVIRONMENT = frozenset("EIS")  # options by which Python reads no variables, or runs nothing at its start


StartKind = Literal["stacks", "operation-calls", "loaded-files", "interventions"]


def start_up_environment(
    command: Sequence[str], kind: StartKind, out: Path
) -> tuple[dict[str, str], None] | tuple[None, str]:
    """Return the variables that make each Python started by the command record something; or the code of a reason.

    It samples its stacks into the file `out`, or writes a file into that folder when it ends: its calls of
    PyTorch's operations, or the files that it loaded. A program of machine code that is no known launcher is assumed to
    start no Python.
    """
    parsed = _parse_command(command)
    if isinstance(parsed, str):
        if is_machine_code(command):
            return None, parsed
    else:
        letters = {letter for word in parsed.options if not word.startswith("--") for letter in word[1:]}
        if _NO_ENVIRONMENT & letters:
            return None, "isolated-python"
    present = os.environ.get("PYTHONPATH")
    path = f"{START_FOLDER}{os.pathsep}{present}" if present else str(START_FOLDER)
    variable = f"PROFKIT_{kind.upper().replace('-', '_')}"
    return {variable: str(out), "PYTHONPATH": path}, None


def is_machine_code(command: Sequence[str]) -> bool:
    """Return whether the program is machine code and no known launcher, or does not exist."""
    path = shutil.which(command[0]) if command else None
    if path is None or os.path.basename(command[0]) in _LAUNCHERS | _SHELLS:
        return path is None
    try:
        return read_start(path, 4).startswith(_MACHINE_CODE)
    except OSError:
        return True


def find_interpreter(command: Sequence[str]) -> str | None:
    """Return the path of the interpreter that runs the command; None for no Python program.

    Also None where an environment manager (uv, poetry, conda) will choose it.
    """
    parsed = _parse_command(command)
    if isinstance(parsed, str) or _ENVIRONMENTS.intersection(
        os.path.basename(word) for word in parsed.launcher[:-1]
    ):
        return None
    return shutil.which(parsed.launcher[-1])


# Programs, and modules after -m, that run the script named after their own options.
_RUNS_A_SCRIPT = frozenset(
    {"torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "srun", "horovodrun", "kernprof", "coverage"}
) | {
    "jsrun",
    "aprun",
    "ibrun",
    "flux",
    "singularity",
    "apptainer",
    "systemd-run",
    "prlimit",
    "composer",
    "streamlit",
}
_RUN_AS_MODULE = frozenset(
    {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "cProfile", "profile"}
) | {"trace", "pdb", "coverage", "kernprof", "memory_profiler", "memray", "scalene", "viztracer", "debugpy"}
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_SEPARATORS = frozenset({";", "&&", "||", "|", "&", "(", ")"})  # between the commands of a shell
_SCRIPTS = (".py", ".pyz", ".ipynb", ".sh", ".bash")
# Of other languages, and what runs them.
_OTHER_INTERPRETERS = frozenset(
    {"ipython", "ipython3", "julia", "Rscript", "node", "deno", "bun", "java", "perl", "ruby"}
)
_OTHER_SCRIPTS = (*_SCRIPTS, ".jl", ".R", ".js", ".mjs", ".ts", ".jar", ".pl", ".rb")


def program_words(command: Sequence[str]) -> tuple[str, ...]:
    """Return the command from the program itself on: without launchers, shells, interpreters and their options.

    `uv run --with x one.py -n 3` is `one.py -n 3`, `bash job.sh` is `job.sh`. A module or the code of Python keeps its
    `-m` or `-c`. A command that names no program is returned as it is.
    """
    words = tuple(command)
    name = os.path.basename(words[0]) if words else ""
    if name in _LAUNCHERS:
        module = words[words.index("-m") :] if "-m" in words[:-1] else ()
        rest = _from_program(words[1:])
        return program_words(rest) if rest else module or words
    if name in _SHELLS and (code := _shell_code(words)):
        return next((program_words(part) for part in code if _names_python(part)), words)
    if name in _OTHER_INTERPRETERS:
        return _from_script(words[1:], _OTHER_SCRIPTS) or words
    if name in _RUNS_A_SCRIPT:
        script = _from_script(words[1:])
        if "-m" in words[: len(words) - max(1, len(script))]:  # `torchrun -m pkg.train conf.py`
            return words[words.index("-m") :]
        return script or _from_program(words[1:]) or words
    if name in _SHELLS:
        return _from_script(words[1:]) or words
    if not words or not _is_interpreter(words[0]):
        return words
    parsed = _parse_python(words[:1], words[1:])
    if isinstance(parsed, str):
        return words
    if parsed.program[0] == "-m" and parsed.program[1] in _RUN_AS_MODULE:
        return _from_script(parsed.program[2:]) or parsed.program
    return parsed.program


def may_run_python(command: Sequence[str]) -> bool:
    """Return whether the command names a Python interpreter or script, or does so in the code for a shell."""
    return _names_python(command) or any(_names_python(part) for part in _shell_code(tuple(command)))


def _names_python(words: Sequence[str]) -> bool:
    return any(
        _is_interpreter(word) or word.endswith((".py", ".pyz")) for word in words[:8] if " " not in word
    )


def _shell_code(words: tuple[str, ...]) -> list[list[str]]:
    """Return the commands in the code of `sh -c CODE`, each as a list of words; empty for any other command."""
    options = [word.startswith("-") and "c" in word and not word.startswith("--") for word in words[1:-1]]
    if os.path.basename(words[0]) not in _SHELLS or not any(options):
        return []
    reader = shlex.shlex(words[options.index(True) + 2], posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    commands: list[list[str]] = [[]]
    try:
        for word in reader:
            if word in _SEPARATORS:
                commands.append([])
            elif commands[-1] or _ASSIGNMENT.fullmatch(word) is None:
                commands[-1].append(word)
    except ValueError:  # a quote without its end
        return []
    return [command for command in commands if command]


def _from_script(words: Sequence[str], endings: tuple[str, ...] = _SCRIPTS) -> tuple[str, ...]:
    """Return the words from the first one that is the name of a script; empty if none is."""
    return next((tuple(words[at:]) for at, word in enumerate(words) if word.endswith(endings)), ())


def _from_program(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words from the first one that is an existing program; empty if none is."""
    return next((tuple(words[at:]) for at, word in enumerate(words) if _starts_program(word)), ())


def _starts_program(word: str) -> bool:
    """Return whether a word after a launcher names what it runs: not its options, their values or its `run`."""
    if word.startswith("-") or word in ("run", "exec"):
        return False
    return word.endswith(_SCRIPTS) or shutil.which(word) is not None


def reads_program_from_input(command: Sequence[str]) -> bool:
    """Return whether a Python takes its program from standard input: `python -`, `python`."""
    parsed = _parse_command(command)
    return parsed == _INTERACTIVE if isinstance(parsed, str) else parsed.program[0] == "-"


def _parse_command(command: Sequence[str]) -> _PythonCommand | str:
    """Return the parts of the command, or the code of the reason why a host could not run it."""
    if not command:
        return "no-command"
    start = 0
    if os.path.basename(command[0]) in _LAUNCHERS:
        position = next((i for i, word in enumerate(command) if i and _is_interpreter(word)), None)
        if position is None:
            return "unnamed-python"
        start = position
    if _is_interpreter(command[start]):
        return _parse_python(tuple(command[: start + 1]), command[start + 1 :])
    script = _read_shebang(command[0])
    if script is None:
        return "no-python-program"
    path, first_line = script
    end = next(i for i, word in enumerate(first_line) if _is_interpreter(word)) + 1
    return _parse_python(first_line[:end], (*first_line[end:], path, *command[1:]))


def _parse_python(launcher: tuple[str, ...], words: Sequence[str]) -> _PythonCommand | str:
    """Split the words after the interpreter as CPython's own getopt does (Python/getopt.c)."""
    position = 0
    options: list[str] = []
    while position < len(words):
        word = words[position]
        if word == "--":
            options.append(word)
            position += 1
            break
        if word == "-" or not word.startswith("-"):
            break
        if word.startswith("--"):
            return "python-runs-nothing"
        before, program, used = _parse_short_options(word, words[position + 1 :])
        if program == ("?",):
            return "python-runs-nothing"
        options += before
        position += used
        if program:
            return _PythonCommand(launcher, tuple(options), (*program, *words[position:]))
    rest = tuple(words[position:])
    if not rest:
        return _INTERACTIVE
    return _PythonCommand(launcher, tuple(option for option in options if option != "--"), rest)


def _parse_short_options(word: str, following: Sequence[str]) -> tuple[list[str], tuple[str, ...], int]:
    """Parse one word of short options; return the options to keep, the program it names, and the words used.

    The program is ("?",) where the word runs none, or where -x or -i ask for what a host does not do.
    """
    for index, letter in enumerate(word[1:], start=1):
        attached = word[index + 1 :]
        if letter in "cm":
            before = [word[:index]] if index > 1 else []
            if attached:
                return before, (f"-{letter}", attached), 1
            return (before, (f"-{letter}", following[0]), 2) if following else ([], ("?",), 1)
        if letter in _NOTHING_TO_RUN or letter in "xi":
            return [], ("?",), 1
        if letter in _VALUE_OPTIONS:
            if attached:
                return [word], (), 1
            return ([word, following[0]], (), 2) if following else ([], ("?",), 1)
    return [word], (), 1


def _is_interpreter(word: str) -> bool:
    return _INTERPRETER.fullmatch(os.path.basename(word)) is not None


def _read_shebang(program: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the path of a Python script that is a command of its own, and the words of its first line."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        first = read_start(path, 4096).partition(b"\n")[0]
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    try:
        words = tuple(shlex.split(first[2:].decode()))
    except ValueError:
        return None
    words = tuple(word for word in words if word != "-S")
    return (path, words) if any(_is_interpreter(word) for word in words[:2]) else None


# Set while a plan is made from another user's configuration: the interpreter named there could be any program.
START_NOTHING = "PROFKIT_START_NOTHING"
_VERSION_CODE = "import sys; print('profkit', *sys.version_info[:3])"


def python_version(interpreter: str | Sequence[str]) -> tuple[int, int, int] | None:
    """Return the version of a Python, (3, 11, 7); None if it does not start or is not Python.

    `interpreter` is a path or the words that start it. Where nothing may be started, profkit's own version is taken.
    """
    if os.environ.get(START_NOTHING):
        return sys.version_info[:3]
    words = [interpreter] if isinstance(interpreter, str) else list(interpreter)
    done = _ask([*words, "-I", "-S", "-c", _VERSION_CODE])
    answer = done.stdout.split()[-4:] if done is not None else []
    if len(answer) < 4 or answer[0] != "profkit":
        return None
    major, minor, micro = map(int, answer[1:])
    return major, minor, micro


def has_module(interpreter: str, name: str, folder: str) -> bool:
    """Return whether a program that this interpreter runs in `folder` could import the module `name`.

    The module is not imported. If nothing may be started, it is assumed to exist.
    """
    if os.environ.get(START_NOTHING):
        return True
    ask = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
    done = _ask([interpreter, "-c", ask, name], folder)
    return done is not None and done.returncode == 0


def _ask(words: Sequence[str], folder: str | None = None) -> subprocess.CompletedProcess[str] | None:
    """Return what an interpreter prints; None if it does not start, or fails."""
    stdin, wait = subprocess.DEVNULL, _ASK_SECONDS
    try:
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=wait, stdin=stdin)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
