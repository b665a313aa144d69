"""Both clients, with their real packages, against a server that answers and fails as services do."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable

import pytest

from profkit.generation.clients.addresses import server_of
from profkit.generation.clients.anthropic_client import AnthropicClient
from profkit.generation.clients.api_client import ApiClient
from profkit.generation.clients.asking import Asking, Patience
from profkit.generation.clients.client import Answer, Cancelled, Message, ModelFailed
from profkit.generation.clients.keys import Key, learn_secret
from profkit.generation.clients.openai_client import OpenAIClient
from profkit.generation.clients.spending import Ledger
from tests.generation.model_server import (
    MODEL,
    Ending,
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
    overloaded,
    rate_limited,
    refusal,
    silence,
    unknown_model,
    without_option,
)

pytestmark = needs_packages

WINDOW = "This model's maximum context length is 4096 tokens. However, you requested {0} in the messages, 16384 more."
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
    given = {"first_seconds": 10.0, "seconds": 10.0, "patience": Patience(first_wait=0.01), **fields}
    asking = Asking(MODEL, server_of(url), f"{dialect.upper()}_API_KEY", **given)  # type: ignore[arg-type]
    learn_secret(KEY)
    return CLIENTS[dialect](asking, Key(asking.key_variable, KEY), url, ledger or Ledger())


def ask(dialect: str, script: Script, **fields: object) -> tuple[Answer, list[str], list[Request]]:
    """The answer to one conversation, what was reported meanwhile, and what the server was sent."""
    reports: list[str] = []
    with ModelServer(script) as server:
        answer = client_of(dialect, server, **fields).ask(TALK, reports.append)
    return answer, reports, server.requests


def failure(dialect: str, script: Script, **fields: object) -> tuple[ModelFailed, list[Request]]:
    with ModelServer(script) as server, pytest.raises(ModelFailed) as caught:
        client_of(dialect, server, **fields).ask(TALK)
    return caught.value, server.requests


def test_an_answer_is_put_together_from_its_stream_and_has_the_tokens_that_the_service_counts(
    dialect: str,
) -> None:
    text = "```python\n" + "x = 1\n" * 40 + "```"
    answer, reports, (request,) = ask(dialect, [text], answer_tokens=77)
    assert (answer.text, answer.stop, answer.retries, answer.estimated) == (text, "end", 0, False)
    assert (answer.input_tokens, answer.output_tokens) == (9, len(text.split()))
    assert reports[0].endswith(" characters")
    assert request.dialect == dialect
    assert request.messages == TALK
    assert request.body["stream"] is True
    assert request.body["max_tokens"] == 77
    assert "temperature" not in request.body


def test_a_temperature_is_sent_where_it_is_asked_for(dialect: str) -> None:
    assert ask(dialect, ["text"], temperature=0.5)[2][0].body["temperature"] == 0.5


def test_what_a_model_thinks_is_no_part_of_its_answer(dialect: str) -> None:
    answer, reports, _ = ask(dialect, [Reply("text", thinking="should I " * 9)])
    assert answer.text == "text"
    assert reports == ["thinking, 40 characters"]


@pytest.mark.parametrize("stop", ["end", "length", "refused"])
def test_a_server_that_streams_nothing_is_understood(dialect: str, stop: Ending) -> None:
    answer, _, _ = ask(dialect, [Reply("x = 1", ending=stop, whole=True)])
    assert (answer.text, answer.stop, answer.input_tokens, answer.output_tokens) == ("x = 1", stop, 9, 3)


def test_tokens_that_a_gateway_counts_only_at_the_end_count(dialect: str) -> None:
    answer, _, _ = ask(dialect, [Reply("x = 1", counted_late=True)])
    assert (answer.input_tokens, answer.output_tokens, answer.estimated) == (9, 3, False)


def test_tokens_are_estimated_by_length_where_the_service_counts_none(dialect: str) -> None:
    answer, _, _ = ask(dialect, [Reply("x" * 41, usage=False)])
    characters = sum(len(message.text) for message in TALK)
    assert answer.estimated
    assert (answer.input_tokens, answer.output_tokens) == (-(-characters // 4), 11)


@pytest.mark.parametrize(("reply", "stop"), [(cut_at_length("half of it"), "length"), (refusal(), "refused")])
def test_an_answer_says_why_it_ends(dialect: str, reply: Reply, stop: str) -> None:
    assert ask(dialect, [reply])[0].stop == stop


@pytest.mark.parametrize(
    ("reply", "reported"),
    [
        (rate_limited(0.01), "rate limit, waiting 1 s"),
        (rate_limited(10, header="retry-after-ms"), "rate limit, waiting 1 s"),
        (rate_limited(None), "rate limit, waiting 1 s"),
        (failed(500), "server error, waiting 1 s"),
        (failed(408), "server error, waiting 1 s"),
        (failed(409), "server error, waiting 1 s"),
        (failed(529), "overloaded, waiting 1 s"),
        (overloaded(), "overloaded, waiting 1 s"),
        (cut(), "the answer was cut off, waiting 1 s"),
        (cut(broken=False), "the answer was cut off, waiting 1 s"),
    ],
    ids=["429", "429 ms", "429 alone", "500", "408", "409", "529", "late", "broken", "ended"],
)
def test_what_passes_is_tried_again(dialect: str, reply: Reply, reported: str) -> None:
    answer, reports, requests = ask(dialect, [reply, "text"])
    assert (answer.text, answer.retries, len(requests)) == ("text", 1, 2)
    assert reports[0] == reported


def test_a_proxy_is_not_asked_for_this_machine(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert ask(dialect, ["text"])[0].text == "text"


def test_a_connection_serves_one_request_after_another(dialect: str) -> None:
    with ModelServer(["text"] * 20) as server:
        client = client_of(dialect, server)
        assert [client.ask(TALK).retries for _ in range(20)] == [0] * 20


def test_a_stream_that_was_cut_counts_with_its_tokens(dialect: str) -> None:
    whole = ask(dialect, ["text"])[0]
    answer = ask(dialect, [cut("x" * 400), "text"])[0]
    assert answer.text == "text"
    assert answer.estimated
    assert answer.output_tokens == (whole.output_tokens or 0) + 100
    assert (answer.input_tokens or 0) > (whole.input_tokens or 0)


@pytest.mark.parametrize("text", ["", "half of it"])
def test_silence_has_its_limit(dialect: str, text: str) -> None:
    start = time.monotonic()
    answer, reports, _ = ask(dialect, [silence(20, text), "text"], seconds=0.2)
    assert answer.text == "text"
    assert "no answer, waiting 1 s" in reports
    assert time.monotonic() - start < 5


def test_a_server_may_think_longer_before_it_begins(dialect: str) -> None:
    assert ask(dialect, [Reply("text", before=0.5)], seconds=0.1)[0].retries == 0


def test_patience_ends(dialect: str) -> None:
    error, requests = failure(dialect, [failed(500)] * 5, patience=Patience(tries=3, first_wait=0.001))
    assert len(requests) == 3
    assert "after 3 tries (500: Internal error)" in error.message
    assert not error.permanent
    error, requests = failure(dialect, [rate_limited(3600)])
    assert len(requests) == 1
    assert "limits the rate of requests, and asks to wait 3600 s (429" in error.message


@pytest.mark.parametrize(
    ("reply", "message", "fix", "permanent"),
    [
        (bad_key(KEY), "refuses the key of {}_API_KEY (401: Incorrect API key provided: [key].)",
         "export {}_API_KEY=...", True),
        (failed(403, "no"), "does not allow it with the key of {}_API_KEY (403: no)", "export {}_API_KEY=...", True),
        (unknown_model(), f"has no model {MODEL}", "--model NAME", True),
        (Reply(status=404, message="Not Found"), "does not speak the dialect", "--base-url http://HOST:PORT", True),
        (context_too_long(), f"the conversation is too long for {MODEL}", None, False),
        (no_credit(), "has nothing left to spend", None, True),
        (Reply(status=400, message="Your credit balance is too low."), "has nothing left to spend", None, True),
        (Reply(status=400, kind="invalid_request_error", message="max_tokens: 16384 > 8192, which is the maximum"),
         f"{MODEL} does not give answers of 16,384 tokens", "--answer-tokens 4096", True),
        (Reply(status=400, kind="invalid_request_error", message="no such thing"),
         "refuses the request (400: no such thing)", None, True),
        (Reply(status=429, code="rate_limit_exceeded", message="Request too large for m on tokens per min"),
         f"the conversation is too long for {MODEL}", None, False),
        (Reply(status=400, message=WINDOW.format(3616)), "does not give answers of", "--answer-tokens", True),
        (Reply(status=400, message=WINDOW.format(5000)), "the conversation is too long", None, False),
        (Reply(status=307, headers={"location": "http://127.0.0.1:1/"}), "does not speak", "--base-url", True),
    ],
    ids=["key", "permission", "model", "address", "context", "quota", "credit", "length", "request",
         "too large", "window", "filled", "redirected"],
)  # fmt: skip
def test_what_does_not_pass_is_said_at_once_with_its_fix(
    dialect: str, reply: Reply, message: str, fix: str | None, permanent: bool
) -> None:
    error, requests = failure(dialect, [reply])
    assert len(requests) == 1
    assert message.format(dialect.upper()) in error.message
    assert (error.fix or "").startswith((fix or "").format(dialect.upper()))
    assert (error.fix is None) == (fix is None)
    assert error.permanent is permanent
    assert KEY[:8] not in error.message
    assert KEY[-4:] not in error.message


def test_nobody_there_is_said_at_once(dialect: str) -> None:
    with ModelServer([]) as server:
        client = client_of(dialect, server)
    with pytest.raises(ModelFailed, match=f"nobody answers at {server.url[7:]}") as caught:
        client.ask(TALK)
    assert (caught.value.fix or "").startswith("--base-url http")


def test_one_that_has_answered_before_will_be_there_again(dialect: str) -> None:
    reports: list[str] = []
    with ModelServer(["text"]) as server:
        client = client_of(dialect, server, patience=Patience(tries=2, first_wait=0.001))
        client.ask(TALK)
    with pytest.raises(ModelFailed, match=r"the connection to .* fails, after 2 tries"):
        client.ask(TALK, reports.append)
    assert reports == ["no connection, waiting 1 s"]


@pytest.mark.parametrize(
    "script", [[silence(20, "half of it")], [Reply(before=20)], [rate_limited(30)]], ids=["stream", "before", "waits"]
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
    with ModelServer([silence(20, "half of it")]) as server:
        with pytest.raises(ModelFailed):
            client_of(dialect, server, seconds=0.2, patience=Patience(tries=1)).ask(TALK)
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


@pytest.mark.parametrize(
    ("option", "instead"), [("stream_options", None), ("max_tokens", "max_completion_tokens")]
)
def test_an_option_that_a_server_does_not_know_is_left_out_from_then_on(
    option: str, instead: str | None
) -> None:
    refuse = without_option(option)
    with ModelServer(lambda request: refuse(request) or "text") as server:
        client = client_of("openai", server, answer_tokens=77)
        assert [client.ask(TALK).text for _ in range(2)] == ["text", "text"]
    assert [option in request.body for request in server.requests] == [True, False, False]
    assert instead is None or server.requests[-1].body[instead] == 77
