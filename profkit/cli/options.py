"""Options that several commands share, and how a result leaves by standard output."""

from __future__ import annotations

import inspect
import io
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from profkit.core.errors import UsageError, WorkloadError

if TYPE_CHECKING:
    from profkit.core.types import RunDocument
    from profkit.execution.places.files import Sending
    from profkit.execution.places.kinds import ExecutionPlace
    from profkit.generation.model import ModelOptions
    from profkit.kernels.evaluation.request import JudgeSettings, PairOptions
    from profkit.kernels.evaluation.sources.source import SourceRequest
    from profkit.kernels.places import PlaceSlots
    from profkit.reporting.view import View


class DepthOption(str, Enum):
    """What may be spent."""

    quick = "quick"
    gate = "gate"
    standard = "standard"
    full = "full"


class OutputFormat(str, Enum):
    """How a command prints its result."""

    terminal = "terminal"
    json = "json"
    markdown = "markdown"

    def __str__(self) -> str:
        return self.value  # typer before 0.29 converts what a callback returns once more, by its text


_requested = OutputFormat.terminal
_printed = False


def json_is_due() -> bool:
    """Return whether `--format json` was asked for and nothing is printed yet: a fault is then a document, too."""
    return _requested is OutputFormat.json and not _printed


def has_printed() -> bool:
    """Return whether the command has printed its result."""
    return _printed


def remember_format(output: OutputFormat) -> OutputFormat:
    """Take note of what was asked for: with `json` a fault is a document, too."""
    global _requested
    _requested = output
    if output is OutputFormat.json and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # whatever the terminal speaks: JSON is UTF-8 (RFC 8259)
    return output


def typed_options(context: typer.Context, names: Iterable[str]) -> list[tuple[str, str]]:
    """Return those of these options that stand on the command line, with their values as text."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return [
        (f"--{name}", str(context.params[name]))
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    ]


PLACES = ("on", "on_python", "send", "send_env")  # where it runs is said anew each time
SHOWN = ("details", "format", "quiet")  # how a result is shown, too


def slots_of(places: tuple[tuple[ExecutionPlace, ...], Sending] | None) -> PlaceSlots | None:
    """Return where the workers run, if not here."""
    if places is None:
        return None
    from profkit.kernels.places import PlaceSlots

    return PlaceSlots(*places)


def typed_beside_resume(context: typer.Context, allowed: Iterable[str], what: str) -> frozenset[str]:
    """Return the options that were typed. Raises UsageError for one beside --resume that `what` has settled already."""
    typed = frozenset(name.removeprefix("--") for name, _ in typed_options(context, context.params))
    if settled := sorted(typed - {*allowed}):
        option = "a program" if settled[0] == "program" else f"--{settled[0].replace('_', '-')}"
        raise UsageError(
            f"{option} cannot be changed by --resume: {what} goes on by its own settings",
            f"leave out {option}, or leave out --resume for a new {what.split()[1]}",
        )
    return typed


def _known_backend(name: str) -> str:
    from profkit.backends import backend_names

    choices = ("auto", *sorted(backend_names()))
    if name not in choices:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, choices))}.")
    return name


ELSEWHERE = "Elsewhere"
HOW, OUT, LIMITS, MODELS, TESTS = "Measurement", "Output", "Limits", "The model", "Tests and kernels"


def option(panel: str | None, help: str, metavar: str | None = None, *names: str, **more: Any) -> Any:
    """Return what typer takes as an option's declaration; `names` where it has others than its parameter."""
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel, **more)


BackendOption = Annotated[
    str,
    option(
        None,
        "The hardware to profile (doctor: auto checks all).",
        "[auto|cpu|cuda|mps]",
        callback=_known_backend,
    ),
]
FormatOption = Annotated[
    OutputFormat,
    typer.Option(
        "--format", "-f", help="json prints one JSON document and nothing else.", callback=remember_format
    ),
]
TargetsOption = Annotated[
    Path | None, option(None, "A YAML file with targets that replace the default ones or are added to them.")
]
StrictOption = Annotated[
    bool, option(None, "Exit with 5 if a target could not be checked.", None, "--strict")
]


# ---------------------------------------------------------------- of commands that run many kernels, and of a model


BudgetOption = Annotated[float, option(HOW, "Seconds for which a test is timed at most.", "SECONDS")]
TimeoutOption = Annotated[
    float, option(HOW, "Seconds that one call or case may take, including compilation.", "SECONDS")
]
GpusOption = Annotated[
    str, option(HOW, "The GPUs to share the work, with one process on each: 0,1,2,3.", "N,N")
]
QuietOption = Annotated[bool, option(OUT, "Show no progress on standard error.", None, "--quiet", "-q")]
TreeOption = Annotated[bool, option(OUT, "Print the call tree of the run, by sampled time.", None, "--tree")]
DetailsOption = Annotated[
    bool, option(OUT, "Show every table with all rows in the terminal.", None, "--details")
]
OutputOption = Annotated[
    Path, option(OUT, "The folder in which the folder of the results is created.", "FOLDER")
]
NameOption = Annotated[str, option(OUT, "The name under which folder, history and compare show it.", "NAME")]

# ---------------------------------------------------------------- options that go together


@dataclass(frozen=True)
class Elsewhere:
    """Where it runs, if not here, and what may go there."""

    on: Annotated[
        list[str] | None,
        option(
            ELSEWHERE,
            "Where to run it: local, ssh:HOST, docker:IMAGE, kubectl:POD, ray:ADDRESS, srun:ARGS, modal:GPU, "
            "'prefix:WORDS'. Several, with commas: the next one is used if one cannot be reached or is lost.",
            "PLACE",
        ),
    ] = None
    on_python: Annotated[
        str | None,
        option(
            ELSEWHERE,
            "The Python on that machine, also for `python` in the command (default: the first one in PATH "
            "that is 3.10 or newer).",
            "PATH",
        ),
    ] = None
    send: Annotated[
        list[Path] | None,
        option(
            ELSEWHERE, "A file or folder to send there, in addition to the files that git tracks.", "PATH"
        ),
    ] = None
    send_env: Annotated[
        list[str] | None,
        option(ELSEWHERE, "An environment variable to send there; no others are sent.", "NAME"),
    ] = None

    def places(self, gpus: str = "") -> tuple[tuple[ExecutionPlace, ...], Sending] | None:
        """Return where it is to run, and what may go there; None for here. Raises UsageError."""
        if not self.on:
            for name, value in vars(self).items():
                if value:
                    raise UsageError(f"--{name.replace('_', '-')} is for another place", "--on ssh:HOST")
            return None
        from profkit.execution.places.files import Sending, read_environment
        from profkit.execution.places.kinds import parse_places

        places = parse_places(self.on)
        for place in places if gpus else ():
            place.refuse_devices()
        if all(place.is_local for place in places) and len(places) == 1:
            return None
        return places, Sending(tuple(self.send or ()), read_environment(self.send_env or ()), self.on_python)


@dataclass(frozen=True)
class ModelChoice:
    """Choose the language model."""

    provider: Annotated[
        str | None,
        option(
            MODELS,
            "The API to use: anthropic, or openai and servers compatible with it. Default: the one whose key is "
            "set; openai with --base-url.",
            "[anthropic|openai]",
        ),
    ] = None
    model: Annotated[str | None, option(MODELS, "The model, by the provider's name for it.", "NAME")] = None
    base_url: Annotated[
        str | None,
        option(
            MODELS,
            "The server, if not the provider's own (vLLM, llama.cpp, a gateway): http://localhost:8000/v1.",
            "URL",
        ),
    ] = None
    key_env: Annotated[
        str | None,
        option(
            MODELS,
            "The environment variable with the key (with --command: several, A,B). Default: ANTHROPIC_API_KEY, "
            "OPENAI_API_KEY.",
            "NAME",
        ),
    ] = None
    command: Annotated[
        str | None,
        option(
            MODELS,
            "A program instead of a model: it reads the file {prompt} and writes the file {output}.",
            "WORDS",
        ),
    ] = None

    def model_options(self) -> ModelOptions:
        """Return the options of that model, with the default length of an answer."""
        from profkit.generation.model import ModelOptions

        return ModelOptions(
            provider=self.provider,
            model=self.model,
            base_url=self.base_url,
            key_env=self.key_env,
            command=self.command,
        )


@dataclass(frozen=True)
class TestChoice:
    """Which calls test the kernels, and where; how often a model may try."""

    __test__ = False  # for pytest

    suite: Annotated[
        str,
        option(
            TESTS,
            "The calls to test with: smoke, opinfo, torchbench, traced, or FILE.py with your own tests.",
        ),
    ] = "smoke"
    traces: Annotated[
        Path | None,
        option(TESTS, "The file of operator traces for the suite.", "PATH"),
    ] = None
    ops: Annotated[
        str, option(TESTS, "The operations to test: relu, add.Tensor, or patterns such as add*.", "A,B")
    ] = ""
    dtype: Annotated[str, option(TESTS, "float32, float16, bfloat16, float64. Default: the suite's.")] = ""
    device: Annotated[str, option(HOW, "auto (cuda if there is a GPU, else cpu), cuda or cpu.")] = "auto"
    threads: Annotated[int, option(HOW, "Threads of torch; 0: torch's default.")] = 0
    timeout: TimeoutOption = 60.0
    max_attempts: Annotated[
        int,
        option(
            LIMITS,
            "How often the model may try each operation.",
            None,
            "--max-attempts",
            "--llm-attempts",
            "--llm-max-attempts",
        ),
    ] = 5


def judge_settings(
    tests: TestChoice,
    timing: PairOptions,
    source: SourceRequest | None = None,
    *,
    correctness_only: bool = False,
) -> JudgeSettings:
    """Return the settings of a judge of kernels from `source` (None: PyTorch itself); its device is as it was typed.

    Raises UsageError for a file of tests that is not there, or has a trace beside it.
    """
    from profkit.kernels.devices import split_list
    from profkit.kernels.evaluation.request import JudgeSettings
    from profkit.kernels.evaluation.sources.source import SourceRequest
    from profkit.kernels.evaluation.suites.suite import is_file

    suite, own = tests.suite, tests.traces
    if is_file(suite):
        if own is not None:
            raise UsageError(f"the suite {suite} takes no trace", "leave out --traces, or --suite traced")
        own = Path(suite)
        if not own.is_file():
            raise UsageError(f"there is no file {suite}", "--suite FILE.py, which lists tests in SUITE")
        suite = own.name
    return JudgeSettings(
        suite=suite,
        suite_path=str(own.resolve()) if own else "",
        source=source or SourceRequest("aten"),
        operations=split_list(tests.ops),
        dtype=tests.dtype,
        device=tests.device,
        correctness_only=correctness_only,
        threads=tests.threads,
        timeout=tests.timeout,
        timing=timing,
    )


HERE, ANY_MODEL, TESTED = Elsewhere(), ModelChoice(), TestChoice()  # as they are where nothing is typed


def spread(function: Callable[..., None]) -> Callable[..., None]:
    """Return the command as Typer takes it: an option group becomes an option for each of its fields."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    hints = get_type_hints(function, include_extras=True)
    for each in inspect.signature(function).parameters.values():
        kind = hints[each.name]
        if not is_dataclass(kind):
            parameters.append(each.replace(annotation=kind, kind=each.KEYWORD_ONLY))
            continue
        groups[each.name] = kind
        own = get_type_hints(kind, include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name, each.KEYWORD_ONLY, default=field.default, annotation=own[field.name]
            )
            for field in fields(kind)
        ]

    @wraps(function)
    def called(**values: Any) -> None:
        for name, kind in groups.items():
            values[name] = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
        function(**values)

    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


# ---------------------------------------------------------------- how a result leaves


def print_tree(run: Path, output: OutputFormat) -> None:
    """Print the call tree of a run's folder. Raises UsageError for JSON, or without sampled callers."""
    from profkit.reporting.views.call_tree import view

    if output is OutputFormat.json:
        fix = "artifacts/stacks.speedscope.json of the run has the stacks as JSON"
        raise UsageError("--tree is for people", fix)
    print_view(view(run), output)


def print_document(
    document: RunDocument,
    output: OutputFormat,
    folder: Path | None = None,
    *,
    source: Path | None = None,
    details: bool = False,
) -> None:
    """Print the result of a command to standard output; in a terminal with every table if `details` are wanted.

    `folder` is that of a new run. Where the document was read from a sweep or an evaluation at `source`, people get one
    screen of it; with `details` a sweep case by case. Of any other `source` a short screen has the verdicts, too.
    """
    if output is OutputFormat.json:
        from profkit.reporting import json

        print_result(json.run(document))
        return
    from profkit.reporting.views.run import view

    cases = document.is_sweep
    if source is not None or cases:
        shown = _judged_kernels(document, source, digest=cases and not (details and source is not None))
        if shown is not None:
            print_view(shown, output, details=details)
            return
    own = None if output is OutputFormat.markdown else folder
    text = render_view(
        view(document, own, verdicts=source is not None), output, details=details and not cases
    )
    print_result(text + _first_finding(document, text, output))


def _first_finding(document: RunDocument, text: str, output: OutputFormat) -> str:
    """Return the first finding in a line, for the end of a text that is longer than the terminal; else nothing.

    What one sees when a command ends is the last screen, and the finding stands pages above it.
    """
    from shutil import get_terminal_size

    if output is not OutputFormat.terminal or not document.insights or not sys.stdout.isatty():
        return ""
    if text.count("\n") < get_terminal_size().lines:
        return ""
    from profkit.reporting.views.run_insights import answer_text, shown_findings

    found = shown_findings(document)
    return f"\nWhat to do first: {answer_text(found[0].insight, document.workload.folder)}\n" if found else ""


def _judged_kernels(document: RunDocument, source: Path | None, *, digest: bool) -> View | None:
    """Return the view of an evaluation, or the `digest` of a sweep; else None."""
    from profkit.kernels.evaluation.document import is_evaluation, read_evaluation

    if source is not None and is_evaluation(source):
        from profkit.reporting.views.kernels.evaluation import view

        return view(read_evaluation(source), source, document.verdicts)
    if not digest:
        return None
    from profkit.reporting.views.kernels.sweep import judged

    return judged(document)


def print_result(text: str) -> None:
    """Write a result to standard output; a reader that has gone (`| head`) changes nothing else."""
    global _printed
    from profkit.reporting.plain_text import disarm_commands

    _printed = True
    whole = text if text.endswith("\n") else text + "\n"
    try:
        sys.stdout.write(whole if _requested is OutputFormat.json else disarm_commands(whole))
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end


def render_view(view: View, output: OutputFormat, *, details: bool = True) -> str:
    """Return a result as Markdown, or for the terminal; there without `details` in a short form."""
    from profkit.reporting import markdown, terminal

    if output is OutputFormat.markdown:
        return markdown.render(view, markdown.STEP_SUMMARY)
    return terminal.render(view, details=details)


def print_view(view: View, output: OutputFormat, *, details: bool = True) -> None:
    """Write a result to standard output as Markdown, or for the terminal."""
    print_result(render_view(view, output, details=details))


def print_as(
    output: OutputFormat, document: Callable[[], str], view: Callable[[], View], *, details: bool = True
) -> None:
    """Write the JSON document where that was asked for, else the view."""
    if output is OutputFormat.json:
        print_result(document())
    else:
        print_view(view(), output, details=details)


def print_json(document: object) -> None:
    """Write one JSON document to standard output."""
    import json

    print_result(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1))


def print_as_it_is(text: str) -> None:
    """Write a document to standard output that is to be kept as a file."""
    global _printed
    _printed = True
    sys.stdout.write(text)
    sys.stdout.flush()


def verdict_exit(document: RunDocument, *, judged: bool, strict: bool) -> int:
    """Return the exit code: 4 if the run failed, 1 if a target failed, 5 if one is unknown with `strict`, else 0.

    Kernels count through the run's own verdicts, weighted by GPU time: one with a thousandth of it fails no run.
    """
    if document.state == "failed":
        return WorkloadError.exit_code
    words = {v.verdict for v in document.verdicts if v.scope.kind != "kernel"}
    if judged and "fail" in words:
        return 1
    if strict and "unknown" in words:
        return 5
    return 0
