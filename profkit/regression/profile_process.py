"""Profile one workload in a separate process, so that its failure cannot affect others; and its options.

The child is `profkit profile`. Its output goes into a log of bounded size, for people; the reason of a
failure it hands over as JSON. What it measured is read from the run's folder, and so is what a child that
died had finished.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import re
import shlex
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from profkit.analysis.judge.load import YamlValue, metric_name
from profkit.core import process
from profkit.core.errors import MachineError, ProfkitError, UsageError, WorkloadError, writing
from profkit.core.files.regular import read_bounded
from profkit.core.files.safe_folder import make_parents, opened
from profkit.core.run_folder import read_run
from profkit.core.types import Depth, Fact, PassName, RunDocument

# `python -m profkit` would look for modules in the workload's folder first, where there may be a `random.py`.
_START = (
    "import sys; sys.path[0] = sys.argv.pop(1); fault_file = sys.argv.pop(1); theirs = sys.argv.pop(1).split(':'); "
    "sys.path[1:] = [path for path in sys.path[1:] if path not in theirs]; "
    "from profkit.cli import main; main(fault_file)"
)
_ROOT = str(Path(__file__).resolve().parents[2])
END_SECONDS = 30.0  # what a child may take for its last words beyond the budget of its measurements
_SAID = 2000  # characters of a child's fault that are shown
# What the nightly's file calls the option that a fix names.
_KEYS = {"--output": "output: FOLDER", "--timeout": "timeout: SECONDS"}
_FRAMES = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+")

# `absent`: not tried, the night ended before; `budget-spent`: not tried, its budget was used up; `not-stored`: the
# history did not take it.
Ending = Literal[
    "done", "workload-failed", "machine", "out-of-time", "died", "refused", "profkit-failed", "absent",
    "budget-spent", "not-stored",
]  # fmt: skip


@dataclass(frozen=True)
class ProfileRequest:
    """What is profiled, and how: the options of a nightly's workload, each read as its type says.

    `timeout` is for one process, `budget` for all of its profile, in seconds.
    """

    name: str
    command: Command
    backend: str = "auto"
    depth: Depth = "gate"
    passes: tuple[PassName, ...] | None = None
    targets: Place | None = None
    env: Variables = field(default_factory=dict)
    cwd: Place = Path()
    timeout: Seconds | None = None
    budget: Seconds = 600.0
    timing: Seconds | None = None  # of sampling in one process, as `profile --sampling` takes it
    precision: Precision = 0.01
    passes_budget: float | None = None  # seconds, as `profile --budget` takes them; no key of a file
    on: str | None = None  # another place, as `profile --on` takes it
    on_python: str | None = None
    given: Path | None = None  # what it reads at its standard input; no key of a file


@dataclass(frozen=True)
class ProfileResult:
    """How the profile went: the document if there is one, and why there is none, or no complete one."""

    ending: Ending
    reason: Fact | None = None
    fix: str | None = None
    folder: Path | None = None
    document: RunDocument | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Return whether everything was measured."""
        return self.ending == "done" and self.document is not None


def profile_once(
    spec: ProfileRequest,
    into: Path,
    tick: Callable[[float], None] | None = None,
    cancel: threading.Event | None = None,
) -> ProfileResult:
    """Profile `spec` into a new folder below `into`; never raise for what the workload does.

    `cancel`, once set by another thread, ends it. Raises MachineError if `into` cannot be written,
    KeyboardInterrupt after the child was ended.
    """
    before = _list_or_create(into)
    fault_file = into / "profkit.fault"
    fault_file.unlink(missing_ok=True)
    ours = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    # Where modules of the workload alone are looked for: one may be called as one that profkit needs.
    theirs = ":".join(path for path in spec.env.get("PYTHONPATH", "").split(os.pathsep) if path not in ours)
    argv = [
        sys.executable,
        "-c",
        _START,
        _ROOT,
        str(fault_file),
        theirs,
        *profile_options(spec, into),
        "--",
        *spec.command,
    ]
    env = {**spec.env, "NO_COLOR": "1"}
    log = into / "profkit.log"
    try:
        outcome = process.run(
            argv,
            env=env,
            cwd=spec.cwd,
            log=log,
            timeout=spec.budget,
            tick=tick,
            cancel=cancel,
            given=spec.given,
        )
    except UsageError as fault:  # its folder is gone
        return ProfileResult("refused", Fact.message(fault.message), fault.fix)
    folder = _new_run(into, before)
    document = None
    if folder is not None:
        with contextlib.suppress(ProfkitError):  # a disk that filled up, or a workload that wrote over it
            document = read_run(folder)
    ending, reason, fix = _ending_of(outcome, spec.budget, document, fault_file)
    return ProfileResult(ending, reason, fix, folder, document, outcome.seconds)


def _list_or_create(into: Path) -> set[str]:
    with writing(into, "output: FOLDER"):
        make_parents(into)
        with opened(into) as folder:
            return set(os.listdir(folder))


def profile_options(spec: ProfileRequest, into: Path) -> list[str]:
    """Return the subcommand and options of `profkit profile` for this request, without the workload's command."""
    options = ["profile", "--quiet", "--output", str(into), "--name", spec.name]
    options += ["--backend", spec.backend, "--depth", spec.depth, "--precision", str(spec.precision)]
    options += ["--passes", ",".join(spec.passes)] if spec.passes is not None else []
    options += ["--targets", str(spec.targets)] if spec.targets is not None else []
    options += ["--timeout", str(spec.timeout)] if spec.timeout is not None else []
    options += ["--sampling", str(spec.timing)] if spec.timing is not None else []
    options += ["--budget", str(spec.passes_budget)] if spec.passes_budget is not None else []
    if spec.on is not None:  # the variables that the file sets are those that go there
        options += ["--on", spec.on, *(word for name in spec.env for word in ("--send-env", name))]
        options += ["--on-python", spec.on_python] if spec.on_python is not None else []
    return options


def _new_run(into: Path, before: set[str]) -> Path | None:
    """Return the run that this child made; the newest if a workload made folders of its own there."""
    with contextlib.suppress(OSError):
        created = [into / name for name in os.listdir(into) if name not in before]
        runs = [path for path in created if (path / "run.json").is_file()]
        return max(runs, key=lambda path: path.name, default=None)
    return None


_BY_CODE: dict[int, tuple[Ending, Fact]] = {
    WorkloadError.exit_code: ("workload-failed", Fact("ended workload-failed")),
    MachineError.exit_code: ("machine", Fact("ended machine")),
    UsageError.exit_code: ("refused", Fact("ended refused")),
    130: ("died", Fact("ended interrupted")),
}


def _ending_of(
    outcome: process.ProcessOutcome, limit: float, document: RunDocument | None, fault_file: Path
) -> tuple[Ending, Fact | None, str | None]:
    """Interpret the child's end, with the fault that it handed over; the file is removed."""
    message, fix = _take_fault(fault_file)
    if document is not None and document.failure:  # the child's own record
        failure = document.failure.strip()
        message, fix = failure, fix if failure == message else None
    # in one line of a report the last line of a traceback says more; the log has it whole
    message = _FRAMES.sub("", message[:_SAID])
    if outcome.timed_out:
        return "out-of-time", Fact.of("ended out-of-time", seconds=limit), "budget: SECONDS"
    if outcome.returncode < 0:
        return "died", Fact.of("ended died", status=outcome.returncode), None
    if outcome.returncode == 0:
        if document is None:
            return "died", Fact("ended without-run"), None
        if document.state != "complete":
            return "died", Fact.of("ended not-whole", state=document.state), None
        return "done", None, None
    otherwise: tuple[Ending, Fact] = (
        "profkit-failed",
        Fact.of("ended profkit-failed", status=outcome.returncode),
    )
    ending, usual = _BY_CODE.get(outcome.returncode, otherwise)
    return ending, Fact.message(message) if message else usual, fix


def _take_fault(file: Path) -> tuple[str, str | None]:
    """Read the fault that a child of profkit handed over, and its fix in words of the nightly's file."""
    try:
        fault = json.loads(read_bounded(file).decode())["error"]
        file.unlink()
        message, fix = str(fault["message"]).strip(), str(fault["fix"]) if fault["fix"] else None
        return message, _KEYS.get((fix or "").partition(" ")[0], fix)
    except (OSError, ValueError, KeyError, TypeError, UsageError):
        return "", None


_SECONDS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(s|min|h)?\s*")
_OF_A_SHELL = ("&&", "||", "|", ";", "&", ">", ">>", "<", "2>&1")  # as words of their own
MAX_SECONDS = 7 * 86400.0  # a week: a number beyond it is a slip, and would overflow a wait


def decode(value: YamlValue, kind: Any, key: str) -> Any:
    """Decode a value as a field of type `kind`. Raises UsageError with the line if it does not fit."""
    parts, origin = get_args(kind), get_origin(kind)
    if hasattr(kind, "__metadata__"):
        return kind.__metadata__[0](value, key)
    if origin is Literal:
        return value.one_of(key, parts)
    if dataclasses.is_dataclass(kind):
        build: Any = kind
        return build(**section(value, kind, key))
    if origin is tuple:
        if not isinstance(value.content, list):
            value.refuse(f"{key} must be a list", f"{key}: [...]")
        return tuple(decode(item, parts[0], key) for item in value.content)
    if type(None) in parts:
        return decode(value, parts[0], key)
    return value.flag(key) if kind is bool else text(value, key)


def _is_option(kind: Any) -> bool:
    """Return whether `decode` reads the type; a field of another type is no option."""
    if type(None) in get_args(kind):
        return _is_option(get_args(kind)[0])
    is_plain = hasattr(kind, "__metadata__") or dataclasses.is_dataclass(kind) or kind in (str, bool)
    return is_plain or get_origin(kind) in (Literal, tuple)


def section(
    value: YamlValue, kind: Any, what: str, also: tuple[str, ...] = (), *, whole: bool = True
) -> dict[str, Any]:
    """Return what a mapping sets of the fields of a dataclass; a key without a value is not set.

    `also`: keys that are read elsewhere. `whole`: fields without a default must be there. Raises UsageError.
    """
    hints = get_type_hints(kind, include_extras=True)
    fields = {f.name: f for f in dataclasses.fields(kind) if f.name not in also and _is_option(hints[f.name])}
    content = value.mapping(what, (*fields, *also))
    given = {key: content[key] for key in fields if key in content and content[key].content is not None}
    for name, option in fields.items():
        needed = option.default is option.default_factory is dataclasses.MISSING
        if whole and needed and name not in given:
            value.refuse(f"{what} has no {name}", f"{name}: ...")
    return {key: decode(item, hints[key], key) for key, item in given.items()}


# ---------------------------------------------------------------- parsers


def text(value: YamlValue, key: str) -> str:
    """Return the value as a text that is not blank. Raises UsageError."""
    content = value.text(key)
    if not content.strip() or "\0" in content:
        value.refuse(f"{key} is empty, or holds a null byte", f"{key}: NAME")
    return content


def _precision(value: YamlValue, key: str) -> float:
    """Read the half-width of an interval, as a share from 0.0001 to 0.5."""
    content = value.number(key)
    if not 0.0001 <= content <= 0.5:
        value.refuse(f"{key} is {content:g}, not a number from 0.0001 to 0.5", f"{key}: 0.01")
    return content


def _seconds(value: YamlValue, key: str) -> float:
    """Read a time in seconds: a number of seconds, or `10 min`, `2 h`."""
    content, duration = value.content, math.nan
    match = _DURATION.fullmatch(str(content)) if not isinstance(content, bool) else None
    if match is not None:
        duration = float(match[1]) * _SECONDS[match[2] or ""]
    if not 0 < duration <= MAX_SECONDS:
        value.refuse(f"{key} is not a time between 0 and 7 days", f"{key}: 600  # seconds")
    return duration


def _path(value: YamlValue, key: str) -> Path:
    """Read a path, relative to the folder of the file that names it."""
    return (Path(value.file).parent / Path(text(value, key)).expanduser()).absolute()


def _command(value: YamlValue, key: str) -> tuple[str, ...]:
    """Read a command: a list of words, or one text that is split as a shell would split it, without a shell."""
    example = f"{key}: [python, bench.py]"
    if isinstance(value.content, list):
        words = [_word(item, f"each word of {key}") for item in value.content]
    else:
        line = text(value, key)
        try:
            words = shlex.split(line)
            shell_word = next((word for word in shlex.split(line, posix=False) if word in _OF_A_SHELL), None)
        except ValueError as error:
            value.refuse(f"{key}: {error}", example)
        if shell_word is not None:
            fix = f"{key}: [sh, -c, {json.dumps(line, ensure_ascii=False)}]"
            value.refuse(f"{key} holds {shell_word}, which is for a shell, and no shell reads it", fix)
    if not words or not words[0].strip():
        value.refuse(f"{key} is empty", example)
    return tuple(words)


def _word(item: YamlValue, what: str) -> str:
    """Read a text, or a number as it was written."""
    if isinstance(item.content, bool) or not isinstance(item.content, (str, int, float)):
        item.refuse(f"{what} must be text", 'in quotes: "1"')
    if "\0" in str(item.content):
        item.refuse(f"{what} holds a null byte", "take it out")
    return str(item.content)


def _variables(value: YamlValue, key: str) -> dict[str, str]:
    """Read environment variables; numbers are taken as they were written."""
    for name, item in value.mapping(key).items():
        if not name or "=" in name or "\0" in name:
            item.refuse(f"{key}: {name!r} is not a name of a variable", 'NAME: "value"')
    return {name: _word(item, f"{key}: {name}") for name, item in value.mapping(key).items()}


Seconds: TypeAlias = Annotated[float, _seconds]
Precision: TypeAlias = Annotated[float, _precision]
Place: TypeAlias = Annotated[Path, _path]
Command: TypeAlias = Annotated[tuple[str, ...], _command]
Variables: TypeAlias = Annotated[Mapping[str, str], _variables]
Metric: TypeAlias = Annotated[str, metric_name]
