"""`profkit generate`: from options to a finished generation, new or resumed.

Attempts are stored as they come.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import Any, cast

from profkit.analysis.generation import best_attempt, generation_scores, is_correct, kept_attempt
from profkit.core import codec
from profkit.core.codec import to_plain_data
from profkit.core.errors import Interrupted, ProfkitError, Progress, UsageError, writing
from profkit.core.files.safe_folder import TemporaryFolder, write_whole
from profkit.core.formatting import plural
from profkit.core.types import Attempt, AttemptStatus, GenerationDocument, MeasuredCeilings, OperationAttempts
from profkit.execution.journal import Journal
from profkit.generation.choose_model import check_listening, make_model
from profkit.generation.judging import AttemptJudge, Stopped
from profkit.generation.keys import is_local, without_secrets
from profkit.generation.loop import ANSWER, LoopTools, OperationLoop
from profkit.generation.model import Cancelled, Model, ModelOptions
from profkit.generation.prompt import KernelTask, device_facts
from profkit.generation.request import (
    FORMAT,
    AskedModel,
    GenerationOptions,
    GenerationRequest,
    attempts_of,
    check_limits,
    header_of,
    make_document,
    make_request,
    note_session,
    read_generation,
)
from profkit.hardware.machine import read_machine
from profkit.hardware.nvidia import read_gpus
from profkit.kernels.campaign import Campaign, Code, open_campaign, require_named, resume_line
from profkit.kernels.evaluation.request import JudgeSettings
from profkit.kernels.evaluation.run import check_tests
from profkit.kernels.evaluation.sources.names import SUFFIX, OperationDescription, encode_name
from profkit.kernels.generation_document import FILE, generation_text
from profkit.reporting.facts import fact_text, word_of
from profkit.reporting.markdown import inline_code
from profkit.reporting.views.kernels.cases import speedup_text
from profkit.reporting.views.kernels.generation import evaluate_line, head_line, model_text
from profkit.reporting.views.kernels.generation import resume_line as resume_text
from profkit.runtime.passes.secrets import mask_command

OVERALL_SUMMARY, README = "OVERALL_SUMMARY.txt", "README.md"
_UNLOADED: tuple[AttemptStatus, ...] = ("load-error", "no-code", "no-answer")
WRITE_SECONDS = 5.0  # between two versions of the page while it goes on
LOOK_SECONDS = 0.2


def generate_kernels(
    settings: JudgeSettings,
    options: GenerationOptions,
    model_options: ModelOptions,
    command: tuple[str, ...],
    progress: Progress,
) -> tuple[GenerationDocument, Path]:
    """Run a new generation; return it and its folder.

    Raises what `make_request`, `make_model` and `run_generation` raise.
    """
    request = make_request(settings, options, mask_command(without_secrets(command))[0])
    folder, model = request.folder, make_model(replace(model_options, limits=request.limits))
    if model_options.base_url is not None and is_local(model_options.base_url):
        check_listening(model_options.base_url)
    with writing(folder, "--output FOLDER"):
        (folder / "logs").mkdir(parents=True)
    try:
        return run_generation(request, model_options, model, progress), folder
    except ProfkitError as error:
        if any(folder.glob(f"*/*{ANSWER}")):  # something was paid for
            raise
        shutil.rmtree(folder, ignore_errors=True)  # nothing was begun: no folder is left behind
        if isinstance(error, Interrupted):  # what it says is of the folder
            raise Interrupted("interrupted before the first answer: there is nothing to go on with") from None
        raise


def resume_generation(
    folder: Path,
    limits: Mapping[str, object],
    named: ModelOptions,
    progress: Progress,
    code: Sequence[Code] = (),
) -> GenerationDocument:
    """Continue the generation in `folder` with its own settings, except for the `limits` that are given.

    What the folder names is run, and gets a key, only if the user has `named` it, too; `code` is the file of
    tests that was named again. Raises UnreadableReport if there is none, UsageError for what is not named, and
    what `generate_kernels` raises.
    """
    request, model, before = read_generation(folder)
    line = f"profkit generate --resume {shlex.quote(str(folder))}"
    require_named(request.settings.code(), code, line)
    _require_model(model, named, line)
    request = replace(request, limits=replace(request.limits, **cast("dict[str, Any]", limits)))
    check_limits(request.limits)
    chosen = ModelOptions(
        provider=model.provider,
        model=model.model if model.provider != "command" else None,
        base_url=named.base_url or model.base_url or None,
        key_env=named.key_env,
        command=named.command,
        answer_tokens=model.answer_tokens,
        limits=request.limits,
        spent=(before.input_tokens, before.output_tokens),
    )
    return run_generation(request, chosen, make_model(chosen), progress)


def _require_model(model: AskedModel, named: ModelOptions, line: str) -> None:
    """Raise UsageError unless the user names each program to run and each host that gets a key.

    A stranger's folder must not choose them.
    """
    far = model.base_url if model.base_url and not is_local(model.base_url) else ""
    wanted = (
        ("--command", model.command, named.command),
        ("--base-url", far, named.base_url),
        ("--key-env", model.key_env, named.key_env),
    )
    missing = [f"{option} {shlex.quote(value)}" for option, value, given in wanted if value and not given]
    if missing:
        raise UsageError(
            "the folder names what would be run, or would get your key; it does where you name it, too",
            f"{line} {' '.join(missing)}",
        )


def run_generation(
    request: GenerationRequest, model_options: ModelOptions, model: Model, progress: Progress
) -> GenerationDocument:
    """Give every operation its attempts; those that the folder holds already are not made again.

    Raises UsageError if no operation is left by the options, MachineError if nothing can be judged or written or
    the model cannot be asked, and Interrupted after a Ctrl-C: what was done is kept, and `--resume` continues it.
    """
    documents: list[GenerationDocument] = []

    def write(journal: Journal[Attempt]) -> None:
        documents.append(make_document(request, journal.contents, journal.seconds))
        for why in write_generation(request.folder, documents[-1]):
            progress.note(why)

    stored = AskedModel(
        model.provider,
        model.name,
        model.server,
        model.address,
        model_options.key_env or "",
        shlex.join(mask_command(shlex.split(model_options.command or ""))[0]),
        model_options.answer_tokens,
    )
    header = header_of(request, stored)
    line = resume_line("profkit generate", request.folder, request.settings.code(), None)
    with open_campaign(FORMAT, request.folder, header, progress, line, write) as campaign:
        campaign.at_end(model.close)
        if request.settings.device.startswith("cuda"):
            campaign.lock_gpus(())
        scratch = TemporaryFolder()
        campaign.at_end(scratch.cleanup)
        judge = AttemptJudge(request, progress, scratch.name)
        campaign.at_end(judge.close)
        tasks = _open(request, judge, campaign)
        note_session(campaign.journal, request.limits)
        doing: dict[str, str] = {}  # by operation, what is done just now
        notes: deque[str] = deque()  # only the thread that shows progress shows them
        tools = LoopTools(request, model, judge, campaign, threading.Event(), doing.__setitem__, notes.append)
        changes, when = -1, 0.0  # how many changes the files have, and when they were written
        for _ in _do(tools, doing, notes, tasks):
            if campaign.journal.changes != changes and monotonic() - when >= WRITE_SECONDS:
                changes, when = campaign.journal.changes, monotonic()
                write(campaign.journal)
        correct = sum(
            best_attempt(attempts_of(campaign.journal.contents, t.operation)) is not None
            for t in tasks.values()
        )
        progress.end(f"{correct} of {plural(len(tasks), 'operation')} have a correct kernel")
    return documents[-1]


def _do(
    tools: LoopTools, doing: Mapping[str, str], notes: deque[str], tasks: Mapping[str, KernelTask]
) -> Iterator[None]:
    """Run all operations, some at a time; yield a few times a second. Raises what one of them raises."""
    campaign = tools.campaign

    def work(folder: str, task: KernelTask) -> None:
        with contextlib.suppress(Stopped, Cancelled, Interrupted):
            if not tools.cancel.is_set():
                OperationLoop(task, folder, tools).run()
        tools.report(task.operation, "")

    def stop() -> None:
        tools.cancel.set()
        tools.model.close()
        tools.judge.close()

    def describe() -> str:
        """Describe the progress: `2 of 5 operations, 3 correct, 6 attempts; relu: attempt 2: testing`."""
        made = [attempts_of(campaign.journal.contents, task.operation) for task in tasks.values()]
        correct = sum(best_attempt(attempts) is not None for attempts in made)
        parts = [f"{sum(future.done() for future in futures)} of {plural(len(tasks), 'operation')}"]
        parts += [f"{correct} correct", plural(sum(map(len, made)), "attempt")]
        under_way = "; ".join(f"{operation}: {what}" for operation, what in [*doing.items()] if what)
        return ", ".join(parts) + (f"; {under_way}" if under_way else "")

    threads = ThreadPoolExecutor(tools.request.at_once, "operation")
    campaign.at_end(lambda: threads.shutdown(cancel_futures=True))
    campaign.at_end(stop)
    futures = [threads.submit(work, folder, task) for folder, task in tasks.items()]
    campaign.begin("generate", f"{plural(len(tasks), 'operation')} by {tools.model.name}", None, describe)
    while not all(future.done() for future in futures):
        done, _ = wait(futures, LOOK_SECONDS, FIRST_EXCEPTION)
        while notes:
            campaign.progress.note(notes.popleft())
        campaign.tick()
        yield
        if any(future.exception() for future in done):
            break
    for future in futures:
        if future.done():
            future.result()


def _open(
    request: GenerationRequest, judge: AttemptJudge, campaign: Campaign[Attempt]
) -> dict[str, KernelTask]:
    """Start the judge; return what is to be written, by folder. Raises UsageError."""
    progress, journal = campaign.progress, campaign.journal
    progress.begin("judge", f"the tests of {request.settings.suite} listed and the device measured")
    about = judge.open(lambda: progress.tick(journal.session_seconds))
    tests = check_tests(request.settings, about)
    facts = _device_facts(request, about)
    tasks = {}
    described = codec.from_plain_data(tuple[OperationDescription, ...], about["described"], "described")
    for description in described:
        folder = _folder_name(description, described)
        tasks[folder] = KernelTask(
            description.name,
            folder + SUFFIX,
            request.language,
            description.schema,
            tuple(test for test in tests if test.operation == description.name),
            facts,
        )
    progress.end(f"{plural(len(tests), 'test')} of {plural(len(tasks), 'operation')} on {about['device']}")
    if "folders" not in campaign.about:
        folders = {task.operation: folder for folder, task in tasks.items()}
        journal.note(device=about.get("device"), versions=about.get("versions"), folders=folders)
    return tasks


def _folder_name(operation: OperationDescription, others: Sequence[OperationDescription]) -> str:
    """Return `relu` for relu.default; `add__Scalar` if a bare name means another overload, or there are several."""
    base = operation.name.partition(".")[0]
    alone = sum(operation_there.name.partition(".")[0] == base for operation_there in others) == 1
    return base if operation.main and alone else encode_name(operation.name)


def _device_facts(request: GenerationRequest, about: Mapping[str, Any]) -> tuple[str, ...]:
    gpus = read_gpus() if request.settings.device.startswith("cuda") else ()
    return device_facts(
        str(about["device"]),
        codec.from_plain_data(dict[str, str], about.get("versions", {}), "versions"),
        None if gpus else read_machine(),
        gpus[0] if gpus else None,
        codec.from_plain_data(dict[str, MeasuredCeilings], about.get("ceilings") or {}, "ceilings"),
    )


def write_generation(folder: Path, document: GenerationDocument) -> tuple[str, ...]:
    """Write all files into `folder`, each whole or not at all; return a line for each report that is missing.

    Raises MachineError if the disk takes no more.
    """
    files = {
        FILE: generation_text(document, folder),
        README: _readme(document, folder),
        **field_files(document),
    }
    for name, text in files.items():
        with writing(folder / name, f"make room, then: {resume_text(document, folder)}"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, (text,), sync=name == FILE, private=name == FILE)
    from profkit.reporting.report_files import write_generation_reports

    return write_generation_reports(folder, document)


# ---------------------------------------------------------------- the files of the field


def field_files(document: GenerationDocument) -> Mapping[str, str]:
    """Return the text of each file, by its path in the generation's folder, as BackendBench's generation does.

    The kernels and their feedback lie there already. Keys are the field's; null where there is no number.
    profkit's own are `kept` (which of several correct kernels an evaluation takes), `speedup_low`, `speedup_high`
    and `speedup_word`.
    """
    files = {}
    for operation in document.operations:
        name = operation.folder
        kept = kept_attempt(operation)
        rows = to_plain_data([_summary_row(attempt, attempt is kept) for attempt in operation.attempts])
        files[f"{name}/{name}_kernel_gen_summary.json"] = json.dumps(rows, indent=2, allow_nan=False) + "\n"
        files[f"{name}/metadata.txt"] = _metadata(document, operation)
    files[OVERALL_SUMMARY] = _overall_summary(document)
    return files


def _summary_row(attempt: Attempt, kept: bool) -> dict[str, Any]:
    speedup = attempt.speedup
    return {
        "attempt": attempt.number,
        "kernel_file": PurePosixPath(attempt.file).name,
        "compilation_error": fact_text(attempt.reason) or attempt.status
        if attempt.status in _UNLOADED
        else None,
        "overall_speedup": speedup.median if speedup is not None else None,
        "correctness_score": attempt.passed / attempt.tests if attempt.tests else 0.0,
        "is_correct": is_correct(attempt),
        "kept": kept,
        **{f"speedup_{name}": getattr(speedup, name, None) for name in ("low", "high", "word")},
    }


def _metadata(document: GenerationDocument, operation: OperationAttempts) -> str:
    """Format the operation's facts as lines of `name: value`."""
    kept = kept_attempt(operation)
    facts = {
        "operation": operation.operation,
        "function": f"{operation.folder}_kernel_impl",
        "suite": document.suite,
        "dtype": document.dtype,
        "language": document.language,
        "device": document.device,
        "model": model_text(document),
        "run": document.name,
        "started": document.started,
        **{f"version {name}": version for name, version in document.versions.items()},
        "attempts": len(operation.attempts),
        "kept": PurePosixPath(kept.file).name if kept is not None else "none",
        "stopped": operation.stopped or "not yet",
    }
    return "".join(f"{name}: {value}\n" for name, value in facts.items() if value not in ("", None))


def _readme(document: GenerationDocument, folder: Path) -> str:
    """Write the README: what was requested, the result, what each file is, and the commands that continue."""
    request = {
        "Operations": ", ".join(operation.operation for operation in document.operations),
        "Model": model_text(document),
        "Language": document.language,
        "Suite": f"{document.suite}{', ' + document.dtype if document.dtype else ''}",
        "Device": document.device,
        "Attempts": f"at most {plural(document.limits.attempts, 'attempt')} for each operation",
        "Started": document.started,
    }
    go_on = {
        "Test and time the kernels that were kept": evaluate_line(document, folder),
        "Continue where it stopped" if not document.complete else "Make the reports again": resume_text(
            document, folder
        ),
    }
    files = {
        "OP/OP_attempt_N.py": "the kernels, as the model wrote them; metadata.txt names the one that is kept",
        "OP/OP_kernel_gen_summary.json": "one row for each attempt: correct or not, and how fast",
        OVERALL_SUMMARY: "the result in a few lines",
        "index.html, report.md": "the same with feedback and sources, to read",
        FILE: "everything, for programs",
    }
    return "\n".join(
        [
            f"# Kernels written by {inline_code(document.model or document.provider)}",
            "",
            f"{head_line(document, generation_scores(document))}.",
            "",
            "## What was asked",
            "",
            *(f"- {name}: {inline_code(value)}" for name, value in request.items() if value),
            "",
            "## How to go on",
            "",
            *(f"{what}:\n\n    {line}\n" for what, line in go_on.items()),
            "## Files",
            "",
            *(f"- `{name}`: {what}" for name, what in files.items()),
            "",
        ]
    )


def _overall_summary(document: GenerationDocument) -> str:
    """Summarise the generation in some lines, with one for each operation."""
    lines = [
        f"Generation: {document.name}",
        f"Model: {model_text(document)}",
        f"Suite: {document.suite}{', ' + document.dtype if document.dtype else ''}",
        f"Device: {document.device}",
        f"Started: {document.started}",
        f"Complete: {'yes' if document.complete else 'no'}",
        "",
        f"{head_line(document, generation_scores(document))}.",
        "",
        "Operations:",
    ]
    width = max((len(operation.operation) for operation in document.operations), default=0)
    for operation in document.operations:
        result, kept = "none is correct", kept_attempt(operation)
        if kept is not None:
            file = PurePosixPath(kept.file).name
            result = f"attempt {kept.number}, {file}, {speedup_text(kept.speedup)}"
        lines.append(
            f"  {operation.operation:<{width}}  {result}; {plural(len(operation.attempts), 'attempt')}; "
            f"{word_of('stop', operation.stopped)}"
        )
    return "\n".join(lines) + "\n"
