"""Options that several verbs share, and how a result leaves by standard output."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from profkit.core.errors import UsageError, WorkloadError

if TYPE_CHECKING:  # `--help` has no use for the model, which takes 10 ms
    from profkit.core.errors import ProfkitError
    from profkit.core.types import RunDocument
    from profkit.execution.places.files import Sending
    from profkit.execution.places.kinds import ExecutionPlace
    from profkit.reporting.view import View


class DepthOption(str, Enum):
    """What may be spent."""

    gate = "gate"
    standard = "standard"
    full = "full"


class OutputFormat(str, Enum):
    """How a verb prints its result."""

    terminal = "terminal"
    json = "json"
    markdown = "markdown"

    def __str__(self) -> str:
        return self.value  # typer before 0.29 converts what a callback returns once more, by its text


_requested = OutputFormat.terminal
_printed = False


def json_is_due() -> bool:
    """Whether `--format json` was asked for and nothing is printed yet: a fault is then a document, too."""
    return _requested is OutputFormat.json and not _printed


def has_printed() -> bool:
    """Whether the verb has printed its result."""
    return _printed


def remember_format(output: OutputFormat) -> OutputFormat:
    """Take note of what was asked for: with `json` a fault is a document, too."""
    global _requested
    _requested = output
    if output is OutputFormat.json and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # whatever the terminal speaks: JSON is UTF-8 (RFC 8259)
    return output


def typed_options(context: typer.Context, names: Iterable[str]) -> list[tuple[str, str]]:
    """Those of these options that stand on the command line, with their values as text."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return [
        (f"--{name}", str(context.params[name]))
        for name, source in sources.items()
        if source is not None and source.name == "COMMANDLINE"
    ]


PLACES = ("on", "on_python", "send", "send_env")  # where it runs is said anew each time


def typed_beside_resume(context: typer.Context, allowed: Iterable[str], what: str) -> frozenset[str]:
    """The options that were typed. Raises UsageError for one beside --resume that `what` has settled already."""
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


T = TypeVar("T")
ELSEWHERE = "Elsewhere"
HOW, OUT, LIMITS, MODELS = "Measurement", "Output", "Limits", "The model"
BackendOption = Annotated[
    str,
    typer.Option(
        "--backend",
        help="The hardware to look at (doctor: auto looks at all).",
        metavar="[auto|cpu|cuda|mps]",
        callback=_known_backend,
    ),
]
FormatOption = Annotated[
    OutputFormat,
    typer.Option(
        "--format", "-f", help="json prints one document and nothing else there.", callback=remember_format
    ),
]
TargetsOption = Annotated[
    Path | None, typer.Option("--targets", help="A YAML file whose targets override or add to the defaults.")
]
StdinOption = Annotated[
    str | None,
    typer.Option(
        "--stdin",
        help="The file that each process of the workload reads as its standard input (default: an empty one).",
        metavar="FILE",
    ),
]
OnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--on",
        help="Where it runs: local, ssh:HOST, docker:IMAGE, kubectl:POD, ray:ADDRESS, srun:ARGS, modal:GPU, "
        "'prefix:WORDS'; with commas: the next one where a place is not reached, or lost.",
        metavar="PLACE",
        rich_help_panel=ELSEWHERE,
    ),
]
OnPythonOption = Annotated[
    str | None,
    typer.Option(
        "--on-python",
        help="The Python there (default: the first of PATH that is 3.10 or newer); it is `python` there, too.",
        metavar="PATH",
        rich_help_panel=ELSEWHERE,
    ),
]
SendOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--send",
        help="A file or folder that goes there, beside the files that git tracks.",
        metavar="PATH",
        rich_help_panel=ELSEWHERE,
    ),
]
SendEnvOption = Annotated[
    list[str] | None,
    typer.Option(
        "--send-env",
        help="A variable of this environment that goes there; no other does.",
        metavar="NAME",
        rich_help_panel=ELSEWHERE,
    ),
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Exit 5 where a verdict is unknown.")]


# ---------------------------------------------------------------- of verbs that run many kernels, and of a model


def option(panel: str, help: str, metavar: str | None = None, *names: str) -> Any:
    """What typer takes as an option's declaration; `names` where it has others than its parameter."""
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel)


def taken(kind: type[T], typed: Mapping[str, Any], **more: Any) -> T:
    """The frozen options of a verb: fields that are called as what was typed, and `more`."""
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in typed.items() if name in known}, **more)


SUITES = "smoke, opinfo, torchbench, traced"
TracesOption = Annotated[
    Path | None,
    option(
        "Tests and kernels", "The suite's own file: operator traces, or a Python file with tests.", "PATH"
    ),
]
OpsOption = Annotated[
    str, option("Tests and kernels", "Operations: relu, add.Tensor, or patterns: add*.", "A,B")
]
DtypeOption = Annotated[
    str, option("Tests and kernels", "float32, float16, bfloat16, float64. Default: the suite's.")
]
DeviceOption = Annotated[str, option(HOW, "auto (cuda where there is one), cuda, cpu.")]
ThreadsOption = Annotated[int, option(HOW, "torch's threads; 0: as many as it takes.")]
BudgetOption = Annotated[float, option(HOW, "Seconds of timing per test at most.", "SECONDS")]
TimeoutOption = Annotated[
    float, option(HOW, "Seconds that a call or a case may take, compiling included.", "SECONDS")
]
GpusOption = Annotated[str, option(HOW, "Numbers of the GPUs that share it, a process each: 0,1,2,3.", "N,N")]
ProfileDepthOption = Annotated[DepthOption, option(HOW, "What each of those may spend.")]
QuietOption = Annotated[bool, option(OUT, "No progress on standard error.", None, "--quiet", "-q")]
DetailsOption = Annotated[
    bool, option(OUT, "In the terminal: every table with all its rows.", None, "--details")
]
OutputOption = Annotated[Path, option(OUT, "Folder in which its own folder is made.", "FOLDER")]
NameOption = Annotated[str, option(OUT, "Its name in its folder, in history and in compare.", "NAME")]

ProviderOption = Annotated[
    str | None,
    option(
        MODELS,
        "Whose interface is spoken: anthropic, or openai and whatever speaks like it. Default: by the key that is "
        "there; with --base-url openai.",
        "[anthropic|openai]",
        "--provider",
    ),
]
ModelOption = Annotated[str | None, option(MODELS, "The model, as its provider names it.", "NAME", "--model")]
BaseUrlOption = Annotated[
    str | None,
    option(
        MODELS,
        "The server, where it is not the provider's own (vLLM, llama.cpp, a gateway): http://localhost:8000/v1.",
        "URL",
        "--base-url",
    ),
]
KeyEnvOption = Annotated[
    str | None,
    option(
        MODELS,
        "The environment variable with the key; of --command several (A,B). Default: ANTHROPIC_API_KEY, "
        "OPENAI_API_KEY.",
        "NAME",
        "--key-env",
    ),
]
CommandOption = Annotated[
    str | None,
    option(
        MODELS,
        "A program in place of a model: {prompt} is a file that it reads, {output} one that it writes.",
        "WORDS",
        "--command",
    ),
]
MaxAttemptsOption = Annotated[
    int,
    option(
        LIMITS,
        "Attempts of the model at each operation at most.",
        None,
        "--max-attempts",
        "--llm-attempts",
        "--llm-max-attempts",
    ),
]


# ---------------------------------------------------------------- where it runs, and how a result leaves


def places_of(
    on: list[str] | None,
    python: str | None,
    send: list[Path] | None = None,
    send_env: list[str] | None = None,
    gpus: str = "",
) -> tuple[tuple[ExecutionPlace, ...], Sending] | None:
    """Where it is to run, and what may go there; None for here. Raises UsageError."""
    from profkit.core.errors import UsageError

    if not on:
        for option, value in (("--on-python", python), ("--send", send), ("--send-env", send_env)):
            if value:
                raise UsageError(f"{option} is for another place", "--on ssh:HOST")
        return None
    from profkit.execution.places.files import Sending, read_environment
    from profkit.execution.places.kinds import parse_places

    places = parse_places(on)
    for place in places if gpus else ():
        place.refuse_devices()
    if all(place.is_local for place in places) and len(places) == 1:
        return None
    return places, Sending(tuple(send or ()), read_environment(send_env or ()), python)


def show_reading(report: Path) -> AbstractContextManager[None]:
    """Tells somebody at a terminal that a large report is still being read; a log needs no such line."""
    from profkit.cli.progress import progress_for, show_if_long

    return show_if_long("read", report.name, progress=progress_for(quiet=not sys.stderr.isatty()))


def print_document(
    document: RunDocument,
    output: OutputFormat,
    folder: Path | None = None,
    *,
    details: bool = False,
    every_case: bool = False,
) -> None:
    """The one thing a verb puts on standard output; on a terminal with every table where `details` are wanted.

    Of a sweep people get a digest, unless `every_case` is wanted by itself.
    """
    if output is not OutputFormat.json and not every_case:
        from profkit.profiling.summarize import is_sweep

        if is_sweep(document):
            from profkit.reporting.views.kernels.sweep import judged

            print_view(judged(document), output)
            return
    if output is OutputFormat.json:
        from profkit.reporting import json

        print_result(json.run(document))
        return
    from profkit.reporting.views.run import view

    print_view(view(document, None if output is OutputFormat.markdown else folder), output, details=details)


def print_sweep_digest(path: Path, document: RunDocument, output: OutputFormat) -> bool:
    """Print a sweep that was judged on one screen, where that is for people; whether it was printed."""
    if output is OutputFormat.json:
        return False
    from profkit.profiling.export import read_sweep_in
    from profkit.reporting.views.kernels.sweep import judged

    folder = path if path.is_dir() else path.parent
    print_view(judged(document, read_sweep_in(folder), folder), output)
    return True


def print_evaluation(path: Path, document: RunDocument, output: OutputFormat, *, details: bool) -> bool:
    """Print an evaluation that was judged, where that is for people and `path` is one; whether it was printed."""
    from profkit.kernels.evaluation.document import is_evaluation, read_evaluation

    if output is OutputFormat.json or not is_evaluation(path):
        return False
    from profkit.reporting.views.kernels.evaluation import view

    print_view(view(read_evaluation(path), path, document.verdicts), output, details=details)
    return True


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
    """A result as Markdown, or for the terminal; there without `details` in a short form."""
    from profkit.reporting import markdown, terminal

    if output is OutputFormat.markdown:
        return markdown.render(view, markdown.STEP_SUMMARY)
    return terminal.render(view, details=details)


def print_view(view: View, output: OutputFormat, *, details: bool = True) -> None:
    """Write a result to standard output as Markdown, or for the terminal."""
    print_result(render_view(view, output, details=details))


def print_json(document: object) -> None:
    """Write one JSON document to standard output."""
    import json

    print_result(json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1))


def print_pieces(pieces: Iterable[str]) -> None:
    """Write a result that may be larger than memory to standard output, piece by piece."""
    global _printed
    for piece in pieces:
        _printed = True
        sys.stdout.write(piece)
    sys.stdout.flush()


def print_documents(documents: list[RunDocument], faults: list[ProfkitError]) -> None:
    """Several results as the one JSON document that `--format json` promises."""
    from profkit.core.run_folder import run_to_json

    whole = {
        "schema": "profkit.runs/1",
        "runs": [run_to_json(document) for document in documents],
        "errors": [{"message": fault.message, "fix": fault.fix} for fault in faults],
    }
    print_json(whole)


def verdict_exit(document: RunDocument, *, judged: bool, strict: bool) -> int:
    """The exit code that a run asks for: 4 where it failed itself, 1 where a verdict failed, 5 where `strict` meets
    an unknown one, else 0.

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
