"""`profkit generate`: from options to a finished generation, new or resumed."""

from __future__ import annotations

import contextlib
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from profkit.core.errors import Interrupted, ProfkitError, UsageError
from profkit.core.progress import Progress
from profkit.core.types import GenerationDocument
from profkit.generation.clients.keys import is_local, without_secrets
from profkit.generation.clients.registry import ClientOptions, MadeClient, make_client
from profkit.generation.journal import FILE, AskedModel, read_document, read_model, read_request
from profkit.generation.request import (
    GenerationOptions,
    GenerationRequest,
    check_limits,
    make_folder,
    make_request,
)
from profkit.generation.run import run_generation
from profkit.kernels.campaign import Code, require_named
from profkit.runtime.passes.secrets import mask_command

ANSWERS = "answers"  # the folder that keeps them, in that of the generation


def generate_kernels(
    options: GenerationOptions, asked: ClientOptions, command: tuple[str, ...], progress: Progress
) -> tuple[GenerationDocument, Path]:
    """A new generation and its folder. Raises as `make_request`, `make_client` and `run_generation`."""
    request = make_request(options, mask_command(without_secrets(command))[0])
    made = _client(asked, request, (0, 0))
    make_folder(request.folder)
    try:
        return _run(request, asked, made, progress), request.folder
    except ProfkitError as error:
        if _was_answered(request.folder):
            raise
        shutil.rmtree(request.folder, ignore_errors=True)  # nothing was begun: no folder is left behind
        if isinstance(error, Interrupted):  # what it says is of the folder
            raise Interrupted("interrupted before the first answer: there is nothing to go on with") from None
        raise


@dataclass(frozen=True)
class NamedAgain:
    """What a folder names, and is run or asked only where the user names it, too."""

    base_url: str | None = None
    key_env: str | None = None
    command: str | None = None
    code: tuple[Code, ...] = ()


def resume_generation(
    folder: Path, limits: Mapping[str, object], named: NamedAgain, progress: Progress
) -> GenerationDocument:
    """Go on with the generation in `folder`, by its own settings but for the `limits` that are given.

    Raises UnreadableReport where there is none, UsageError where it would run or ask what was not `named` again, and as
    `generate_kernels`.
    """
    request, model = read_request(folder), read_model(folder)
    line = f"profkit generate --resume {shlex.quote(str(folder))}"
    require_named(request.settings.code(), named.code, line)
    _require_model(model, named, line)
    request = replace(request, limits=replace(request.limits, **cast("dict[str, Any]", limits)))
    check_limits(request.limits)
    asked = ClientOptions(
        provider=model.provider,
        model=model.model if model.provider != "command" else None,
        base_url=named.base_url or model.base_url or None,
        key_env=named.key_env,
        command=named.command,
        answer_tokens=model.answer_tokens,
        temperature=model.temperature,
    )
    before = read_document(folder)
    made = _client(asked, request, (before.input_tokens, before.output_tokens))
    return _run(request, asked, made, progress)


def _require_model(model: AskedModel, named: NamedAgain, line: str) -> None:
    """Raises UsageError: a folder of somebody else's chooses no program that runs, and no host that gets a key."""
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


def _was_answered(folder: Path) -> bool:
    """Whether something was paid for: an attempt, or an answer that was about to be one."""
    with contextlib.suppress(OSError):
        if any((folder / ANSWERS).iterdir()):
            return True
    if not (folder / FILE).is_file():
        return False
    return any(operation.attempts for operation in read_document(folder).operations)


def _client(asked: ClientOptions, request: GenerationRequest, spent: tuple[int, int]) -> MadeClient:
    return make_client(
        replace(
            asked,
            limits=request.limits,
            spent=spent,
            answers=request.folder / ANSWERS,
        )
    )


def _run(
    request: GenerationRequest, asked: ClientOptions, made: MadeClient, progress: Progress
) -> GenerationDocument:
    for note in made.notes:
        progress.note(note)
    model = AskedModel(
        made.client.provider,
        made.client.model,
        made.server,
        made.address,
        asked.key_env or "",
        shlex.join(mask_command(shlex.split(asked.command or ""))[0]),
        asked.answer_tokens,
        asked.temperature,
    )
    try:
        return run_generation(request, model, made.client, progress)
    finally:
        made.client.close()
