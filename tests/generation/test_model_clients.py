"""Both clients, with their real packages, against a server that answers and fails as services do."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable

import pytest

from profkit.generation.clients.api_client import AnthropicClient, ApiClient, Asking, OpenAIClient
from profkit.generation.clients.client import Answer, Cancelled, Ledger, Message, ModelFailed
from profkit.generation.clients.keys import Key, learn_secret, server_of
from tests.generation.model_server import (
    MODEL,
    ModelServer,
    Reply,
    Request,
    Script,
    bad_key,
    context_too_long,
    cut,
    cut_at_length,
    failed,
    needs_packages,
    no_credit,
    rate_limited,
    refusal,
    silence,
    unknown_model,
    without_option,
)

pytestmark = needs_packages

KEY = "sk-made-up-0123456789abcdefghijklmnop"
TALK = (Message("system", "Write kernels."), Message("user", "Write a kernel for relu, in Triton."))
CLIENTS: dict[str, Callable[[Asking, Key, str | None, Ledger], ApiClient]] = {
    "openai": OpenAIClient,
    "anthropic": AnthropicClient,
}


@pytest.fixture(params=list(CLIENTS))
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def client_of(dialect: str, server: ModelServer, ledger: Ledger | None = None, **fields: object) -> ApiClient:
    url = server.openai_url if dialect == "openai" else server.anthropic_url
    given = {"seconds": 10.0, "retries": 1, **fields}
    asking = Asking(MODEL, server_of(url), f"{dialect.upper()}_API_KEY", **given)  # type: ignore[arg-type]
    learn_secret(KEY)
    return CLIENTS[dialect](asking, Key(asking.key_variable, KEY), url, ledger or Ledger())


def ask(dialect: str, script: Script, **fields: object) -> tuple[Answer, list[Request]]:
    """The answer to one conversation, and what the server was sent."""
    with ModelServer(script) as server:
        answer = client_of(dialect, server, **fields).ask(TALK)
    return answer, server.requests


def failure(dialect: str, script: Script, **fields: object) -> tuple[ModelFailed, list[Request]]:
    with ModelServer(script) as server, pytest.raises(ModelFailed) as caught:
        client_of(dialect, server, **fields).ask(TALK)
    return caught.value, server.requests


def test_an_answer_has_the_tokens_that_the_service_counts(dialect: str) -> None:
    text = "```python\n" + "x = 1\n" * 40 + "```"
    answer, (request,) = ask(dialect, [text], answer_tokens=77)
    assert (answer.text, answer.stop, answer.retries, answer.estimated) == (text, "end", 0, False)
    assert (answer.input_tokens, answer.output_tokens) == (9, len(text.split()))
    assert request.dialect == dialect
    assert request.messages == TALK
    assert request.body["max_tokens"] == 77
    assert "temperature" not in request.body


def test_a_temperature_is_sent_where_it_is_asked_for(dialect: str) -> None:
    assert ask(dialect, ["text"], temperature=0.5)[1][0].body["temperature"] == 0.5


def test_an_answer_that_may_take_longer_than_ten_minutes_is_asked_for_all_the_same(dialect: str) -> None:
    assert ask(dialect, ["text"], answer_tokens=100_000, seconds=600.0)[0].text == "text"


def test_what_a_model_thinks_is_no_part_of_its_answer(dialect: str) -> None:
    assert ask(dialect, [Reply("text", thinking="should I " * 9)])[0].text == "text"


def test_tokens_are_estimated_by_length_where_the_service_counts_none(dialect: str) -> None:
    answer, _ = ask(dialect, [Reply("x" * 41, usage=False)])
    characters = sum(len(message.text) for message in TALK)
    assert answer.estimated
    assert (answer.input_tokens, answer.output_tokens) == (-(-characters // 4), 11)


def test_whoever_waits_hears_for_how_long(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("profkit.generation.clients.api_client._REPORT_SECONDS", 0.05)
    reports: list[str] = []
    with ModelServer([Reply("text", before=0.2)]) as server:
        client_of(dialect, server).ask(TALK, reports.append)
    assert reports[0].startswith("no answer for ")


@pytest.mark.parametrize(("reply", "stop"), [(cut_at_length("half of it"), "length"), (refusal(), "refused")])
def test_an_answer_says_why_it_ends(dialect: str, reply: Reply, stop: str) -> None:
    assert ask(dialect, [reply])[0].stop == stop


@pytest.mark.parametrize(
    "reply", [rate_limited(0.01), failed(529, headers={"retry-after-ms": "1"}), cut("x")]
)
def test_what_passes_is_tried_again(dialect: str, reply: Reply) -> None:
    answer, requests = ask(dialect, [reply, "text"])
    assert (answer.text, answer.retries, len(requests)) == ("text", 1, 2)


def test_a_proxy_is_not_asked_for_this_machine(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert ask(dialect, ["text"])[0].text == "text"


def test_a_connection_serves_one_request_after_another(dialect: str) -> None:
    with ModelServer(["text"] * 20) as server:
        client = client_of(dialect, server)
        assert [client.ask(TALK).retries for _ in range(20)] == [0] * 20


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (failed(500), "has an error of its own (500: Internal error)"),
        (rate_limited(3600), "limits the rate of requests (429: Rate limit reached.)"),
        (silence(20), "does not answer"),
    ],
    ids=["error", "rate", "silence"],
)
def test_patience_ends_and_another_operation_may_be_answered(
    dialect: str, reply: Reply, message: str
) -> None:
    error, requests = failure(dialect, [reply], seconds=0.2, retries=0)
    assert len(requests) == 1
    assert message in error.message
    assert not error.permanent


@pytest.mark.parametrize(
    ("reply", "message", "fix", "permanent"),
    [
        (bad_key(KEY), "refuses the key of {}_API_KEY (401: Incorrect API key provided: [key].)",
         "export {}_API_KEY=...", True),
        (failed(403, "no"), "does not allow it with the key of {}_API_KEY (403: no)", "export {}_API_KEY=...", True),
        (unknown_model(), f"has no model {MODEL}", "--model NAME, or --base-url http://HOST:PORT", True),
        (Reply(status=404, message="Not Found"), "does not speak the dialect", "--model NAME", True),
        (context_too_long(), "refuses the request (400: prompt is too long", None, False),
        (no_credit(), "has nothing left to spend", None, True),
        (Reply(status=402, message="Pay."), "has nothing left to spend", None, True),
        (Reply(status=307, headers={"location": "http://127.0.0.1:1/"}), "does not speak", "--base-url", True),
        (Reply(page=True), "does not speak the dialect", "--base-url http://HOST:PORT", True),
    ],
    ids=["key", "permission", "model", "address", "context", "quota", "paid", "redirected", "page"],
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
        client = client_of(dialect, server, retries=0)
    with pytest.raises(ModelFailed, match=f"{server.url[7:]} cannot be reached") as caught:
        client.ask(TALK)
    assert caught.value.permanent
    assert (caught.value.fix or "").startswith("--base-url http")


@pytest.mark.parametrize(
    "script", [[silence(20)], [rate_limited(30)]], ids=["asked", "between two tries"]
)  # fmt: skip
def test_closing_ends_what_is_asked_at_once(dialect: str, script: Script) -> None:
    with ModelServer(script) as server:
        client = client_of(dialect, server)
        closer = threading.Timer(0.3, client.close)
        closer.start()
        start = time.monotonic()
        with pytest.raises(Cancelled):
            client.ask(TALK)
        assert 0.2 < time.monotonic() - start < 3
        with pytest.raises(Cancelled):
            client.ask(TALK)


def test_a_server_that_is_left_sees_it_and_need_not_go_on(dialect: str) -> None:
    with ModelServer([silence(20)]) as server:
        with pytest.raises(ModelFailed):
            client_of(dialect, server, seconds=0.2, retries=0).ask(TALK)
        (connection,) = server.connections
        assert select.select([connection], [], [], 5)[0]
        assert connection.recv(1, socket.MSG_PEEK) == b""


def test_several_conversations_go_on_at_once(dialect: str) -> None:
    together = threading.Barrier(4, timeout=10)

    def reply(request: Request) -> str:
        together.wait()
        return f"answer to {request.prompt}"

    answers: dict[str, str] = {}

    def ask_for(name: str) -> None:
        answers[name] = client.ask([Message("user", name)]).text

    with ModelServer(reply) as server:
        client = client_of(dialect, server)
        threads = [threading.Thread(target=ask_for, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert answers == {name: f"answer to {name}" for name in "abcd"}


def test_a_name_of_an_option_that_a_server_does_not_know_is_replaced_from_then_on() -> None:
    refuse = without_option("max_tokens")
    with ModelServer(lambda request: refuse(request) or "text") as server:
        client = client_of("openai", server, answer_tokens=77)
        assert [client.ask(TALK).text for _ in range(2)] == ["text", "text"]
    assert ["max_tokens" in request.body for request in server.requests] == [True, False, False]
    assert server.requests[-1].body["max_completion_tokens"] == 77
