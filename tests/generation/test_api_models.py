"""Both clients, with their real packages, against a server that answers and fails as services do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from profkit.generation.api_client import AnthropicModel, ApiModel, OpenAIModel
from profkit.generation.keys import Key, learn_secret
from profkit.generation.model import Answer, Cancelled, ChatMessage, Ledger, ModelFailed, ModelOptions
from tests.generation.model_server import (
    MODEL,
    ModelServer,
    Reply,
    Request,
    Script,
    bad_key,
    failed,
    needs_packages,
    rate_limited,
)

pytestmark = needs_packages

KEY = "sk-made-up-0123456789abcdefghijklmnop"
TALK = (ChatMessage("system", "Write kernels."), ChatMessage("user", "Write a kernel for relu, in Triton."))
MODELS: dict[str, Callable[[ModelOptions, Key, str | None, Ledger], ApiModel]] = {
    "openai": OpenAIModel,
    "anthropic": AnthropicModel,
}


@pytest.fixture(params=list(MODELS))
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def model_of(dialect: str, server: ModelServer, **fields: object) -> ApiModel:
    url = server.openai_url if dialect == "openai" else server.anthropic_url
    options = ModelOptions(model=MODEL, **{"timeout": 10.0, "retries": 1, **fields})  # type: ignore[arg-type]
    learn_secret(KEY)
    return MODELS[dialect](options, Key(f"{dialect.upper()}_API_KEY", KEY), url, Ledger())


def ask(dialect: str, script: Script, **fields: object) -> tuple[Answer, list[Request]]:
    """The answer to one conversation, and what the server was sent."""
    with ModelServer(script) as server:
        answer = model_of(dialect, server, **fields).ask(TALK)
    return answer, server.requests


def failure(dialect: str, script: Script, **fields: object) -> tuple[ModelFailed, list[Request]]:
    with ModelServer(script) as server, pytest.raises(ModelFailed) as caught:
        model_of(dialect, server, **fields).ask(TALK)
    return caught.value, server.requests


@pytest.mark.thorough
def test_an_answer_has_the_tokens_that_the_service_counts(dialect: str) -> None:
    text = "```python\n" + "x = 1\n" * 40 + "```"
    answer, (request,) = ask(dialect, [text], answer_tokens=77)
    assert (answer.text, answer.stop) == (text, "end")
    assert (answer.input_tokens, answer.output_tokens) == (9, len(text.split()))
    assert request.dialect == dialect
    assert request.messages == TALK
    assert request.body["max_tokens"] == 77


def test_what_a_model_thinks_is_no_part_of_its_answer(dialect: str) -> None:
    assert ask(dialect, [Reply("text", thinking="should I " * 9)])[0].text == "text"


@pytest.mark.parametrize(
    ("reply", "stop"),
    [
        (Reply("half of it", ending="length"), "length"),
        (Reply("no", ending="refused"), "refused"),
    ],
)
def test_an_answer_says_why_it_ends(dialect: str, reply: Reply, stop: str) -> None:
    assert ask(dialect, [reply])[0].stop == stop


@pytest.mark.parametrize(
    "reply", [rate_limited(0.01), failed(529, headers={"retry-after-ms": "1"}), Reply("x", broken=True)]
)
def test_what_passes_is_tried_again(dialect: str, reply: Reply) -> None:
    answer, requests = ask(dialect, [reply, "text"])
    assert (answer.text, len(requests)) == ("text", 2)


def test_a_proxy_is_not_asked_for_this_machine(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert ask(dialect, ["text"])[0].text == "text"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (failed(500), "answers with an error (500: Internal error)"),
        (rate_limited(3600), "answers with an error (429: Rate limit reached.)"),
        (Reply(before=20.0), "does not answer"),
    ],
    ids=["error", "rate", "silence"],
)
def test_patience_ends_and_another_operation_may_be_answered(
    dialect: str, reply: Reply, message: str
) -> None:
    error, requests = failure(dialect, [reply], timeout=0.2, retries=0)
    assert len(requests) == 1
    assert message in error.message
    assert not error.permanent


@pytest.mark.parametrize(
    ("reply", "message", "fix", "permanent"),
    [
        (bad_key(KEY), "refuses the key of {}_API_KEY (401)",
         "export {}_API_KEY=...", True),
        (failed(403, "no"), "does not allow it with the key of {}_API_KEY (403: no)", "export {}_API_KEY=...", True),
        (Reply(status=404), f"has no model {MODEL}", "--model NAME, or --base-url http://HOST:PORT", True),
        (Reply(status=404, message="Not Found"), "does not speak the dialect", "--model NAME", True),
        (Reply(status=400, message="too long"), "answers with an error (400: too long", None, False),
        (Reply(status=307, headers={"location": "http://127.0.0.1:1/"}), "answers with an error (307", None, False),
        (Reply(page=True), "does not speak the dialect", "--base-url http://HOST:PORT", True),
    ],
    ids=["key", "permission", "model", "address", "context", "redirected", "page"],
)  # fmt: skip
def test_what_does_not_pass_is_said_at_once_with_its_fix(
    dialect: str, reply: Reply, message: str, fix: str | None, permanent: bool
) -> None:
    error, requests = failure(dialect, [reply], retries=0)
    assert len(requests) == 1
    assert message.format(dialect.upper()) in error.message
    assert (error.fix or "").startswith((fix or "").format(dialect.upper()))
    assert (error.fix is None) == (fix is None)
    assert error.permanent is permanent
    assert KEY[:8] not in error.message
    assert KEY[-4:] not in error.message


def test_a_server_that_is_not_there_is_named_with_the_option_for_another(dialect: str) -> None:
    with ModelServer([]) as server:
        model = model_of(dialect, server, retries=0)
    with pytest.raises(ModelFailed, match=f"{server.url[7:]} cannot be reached") as caught:
        model.ask(TALK)
    assert caught.value.permanent
    assert (caught.value.fix or "").startswith("--base-url http")


@pytest.mark.parametrize(
    "script", [[Reply(before=20.0)], [rate_limited(30)]], ids=["asked", "between two tries"]
)  # fmt: skip
def test_closing_ends_what_is_asked_at_once(dialect: str, script: Script) -> None:
    with ModelServer(script) as server:
        model = model_of(dialect, server)
        closer = threading.Timer(0.3, model.close)
        closer.start()
        start = time.monotonic()
        with pytest.raises(Cancelled):
            model.ask(TALK)
        assert 0.2 < time.monotonic() - start < 15  # of 20 and 30
        with pytest.raises(Cancelled):
            model.ask(TALK)
