"""`doctor --llm`: one short question to the user's own account."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.generation.clients.registry import QUESTION, ClientOptions, try_model
from tests.cli_runner import profkit
from tests.generation.model_server import (
    MODEL,
    ModelServer,
    Reply,
    bad_key,
    needs_packages,
    rate_limited,
    refusal,
)


@needs_packages
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_one_short_question_shows_that_a_model_answers(provider: str) -> None:
    with ModelServer([rate_limited(), "ready"]) as server:
        (check,) = try_model(ClientOptions(provider=provider, base_url=server.url))
    assert (check.name, check.state, check.fix) == ("model", "ok", None)
    assert (check.version or "").startswith(f"{provider} ")
    assert check.detail.startswith(f"{provider} at {server.url[7:]}: {MODEL} answers in ")
    assert "5 tokens in, 1 out, after 1 further try; made-up-1 is the only model" in check.detail
    assert server.requests[-1].prompt == QUESTION
    assert server.requests[-1].body["max_tokens"] == 16


@needs_packages
@pytest.mark.parametrize(
    ("reply", "state", "detail", "fix"),
    [
        (bad_key(), "refused", "refuses the key of OPENAI_API_KEY", "export OPENAI_API_KEY=..."),
        (refusal(), "limited", "m refuses to answer", None),
        (Reply("", ending="length", usage=False), "ok", "(estimated: the service counts none)", None),
    ],
)
def test_what_is_in_the_way_has_its_fix(reply: Reply, state: str, detail: str, fix: str | None) -> None:
    with ModelServer([reply]) as server:
        (check,) = try_model(ClientOptions(base_url=server.url, model="m"))
    assert (check.state, check.fix) == (state, fix)
    assert detail in check.detail


NOTHING = {"ANTHROPIC_API_KEY": "", "ANTHROPIC_AUTH_TOKEN": "", "OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}


@pytest.mark.parametrize(
    ("arguments", "code", "state"),
    [
        (["--command", "cp {prompt} {output}"], 0, "ok"),
        (["--command", "false {prompt}"], 3, "refused"),
        ([], 3, "refused"),
    ],
)
def test_the_verb_says_by_its_exit_code_whether_a_model_answers(
    arguments: list[str], code: int, state: str, tmp_path: Path
) -> None:
    said = profkit("doctor", "--llm", *arguments, "--format", "json", cwd=tmp_path, env=NOTHING)
    assert said.code == code
    assert [check["state"] for check in said.json()["checks"]] == [state]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "m"], "--model is of a language model"),
        (["--llm", "--on", "ssh:nowhere"], "a language model is asked from this machine"),
        (["--llm", "--command", "agent"], "--command needs {prompt}"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    said = profkit("doctor", *arguments, cwd=tmp_path, env=NOTHING)
    assert said.code == 2
    assert message in said.err
    assert "Traceback" not in said.err
