"""Which model a user's options mean, what it may take, and whether it answers at all."""

from __future__ import annotations

import os
import threading
import time

import pytest

from profkit.core.errors import MachineError, UsageError
from profkit.core.types import GenerationLimits
from profkit.generation import api_client
from profkit.generation.choose_model import make_model, provider_of
from profkit.generation.model import BudgetSpent, Cancelled, ChatMessage, Ledger, ModelFailed, ModelOptions
from tests.generation.model_server import ModelServer, Reply, needs_packages

KEY = "sk-made-up-0123456789abcdefghijklmnop"
TALK = [ChatMessage("user", "x" * 300)]  # 100 tokens are set aside
OPEN = threading.Event()


@pytest.mark.parametrize(
    ("options", "variables", "provider"),
    [
        (ModelOptions(), ["OPENAI_API_KEY"], "openai"),
        (ModelOptions(), ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"], "anthropic"),
        (ModelOptions(), ["ANTHROPIC_AUTH_TOKEN"], "anthropic"),
        (ModelOptions(provider="openai"), ["ANTHROPIC_API_KEY"], "openai"),
        (ModelOptions(base_url="http://localhost:8000"), ["ANTHROPIC_API_KEY"], "openai"),
        (ModelOptions(command="agent {prompt}"), ["ANTHROPIC_API_KEY"], "command"),
    ],
)
def test_who_is_asked(
    options: ModelOptions, variables: list[str], provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in variables:
        monkeypatch.setenv(variable, KEY)
    assert provider_of(options) == provider


@pytest.mark.parametrize(
    ("options", "message", "fix"),
    [
        (ModelOptions(), r"no ANTHROPIC_API_KEY.*no --base-url and no --command", "export ANTHROPIC_API_KEY=..."),
        (
            ModelOptions(base_url="http://localhost:1", key_env="GATEWAY_KEY", model="m"),
            "there is no key for localhost:1: GATEWAY_KEY is not set",
            "export GATEWAY_KEY=...",
        ),
    ],
)  # fmt: skip
def test_without_a_key_the_way_to_give_one_is_said(options: ModelOptions, message: str, fix: str) -> None:
    with pytest.raises(ModelFailed, match=message) as caught:
        make_model(options)
    assert (caught.value.fix, caught.value.exit_code) == (fix, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ModelOptions(provider="nobody"), "no provider is called nobody"),
        (ModelOptions(provider="openai", command="agent {prompt}"), "leave --provider, --model"),
        (ModelOptions(model="m", command="agent {prompt}"), "leave --provider, --model"),
        (ModelOptions(limits=GenerationLimits(tokens=9), command="agent {prompt}"), "nobody says"),
        (ModelOptions(provider="command"), "needs the command"),
        (ModelOptions(command="agent"), "needs {prompt}"),
        (ModelOptions(command="agent '{prompt}"), "no closing quotation"),
        (ModelOptions(base_url="http://localhost:8000"), "name the model"),
        (ModelOptions(key_env="MY_KEY", model="m"), "does not say who is asked"),
        (ModelOptions(base_url="localhost:8000", model="m"), "not an address of a server"),
        (ModelOptions(base_url="http://host:port/v1", model="m"), "not an address of a server"),
        (ModelOptions(base_url="http://[host", model="m"), "not an address of a server"),
        (ModelOptions(base_url="http://host/v1?version=2", model="m"), "not an address of a server"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: ModelOptions, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_model(options)


@pytest.mark.parametrize("key", ["sk-proj-\N{HORIZONTAL ELLIPSIS}", "export KEY=sk-1234", "sk-1\nsk-2"])
def test_what_is_no_key_is_not_sent(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelFailed, match="what OPENAI_API_KEY holds is not a key") as caught:
        make_model(ModelOptions(model="m"))
    assert "sk-" not in caught.value.message


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(api_client.importlib, "import_module", missing)
    with pytest.raises(MachineError, match="openai is not installed") as caught:
        make_model(ModelOptions(base_url="http://localhost:1", model="m"))
    assert caught.value.fix == "pip install 'profkit[llm]'"


def served(server: ModelServer, provider: str = "openai", **fields: object) -> ModelOptions:
    url = server.openai_url if provider == "openai" else server.anthropic_url
    return ModelOptions(**{"provider": provider, "model": "m", "base_url": url, **fields})  # type: ignore[arg-type]


@needs_packages
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_key_goes_to_its_server_and_nowhere_else(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_KEY", KEY)
    with ModelServer(["text"]) as server:
        model = make_model(served(server, provider, key_env="GATEWAY_KEY"))
        assert model.ask(TALK).text == "text"
    headers = server.requests[0].headers
    assert KEY in (headers.get("x-api-key"), headers.get("authorization", "").removeprefix("Bearer "))
    assert "GATEWAY_KEY" not in os.environ
    assert (model.server, model.provider, model.name) == (server.url[7:], provider, "m")


@needs_packages
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_who_stands_in_an_address_is_not_shown(provider: str) -> None:
    with ModelServer([Reply(status=400, message="no word-0123 of user-0123")]) as server:
        options = served(server, provider)
        url = (options.base_url or "").replace("//", "//user-0123:word-0123@")
        model = make_model(served(server, provider, base_url=url))
        with pytest.raises(ModelFailed, match=r"no \[key\] of \[key\]"):
            model.ask(TALK)
    assert (model.server, model.address) == (server.url[7:], options.base_url)


@needs_packages
def test_a_bearer_token_is_sent_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)
    with ModelServer(["text"]) as server:
        make_model(served(server, "anthropic")).ask(TALK)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in server.requests[0].headers


# ---------------------------------------------------------------- what it may take


def test_a_request_that_could_pass_the_limit_is_refused_before_it_is_sent() -> None:
    ledger = Ledger(GenerationLimits(tokens=1000))
    ledger.settle(ledger.reserve(TALK, 900, OPEN), (80, 40))
    assert ledger.spent == (80, 40)
    ledger.settle(ledger.reserve(TALK, 780, OPEN), (0, 0))
    with pytest.raises(BudgetSpent):
        ledger.reserve(TALK, 781, OPEN)


def test_what_others_have_set_aside_is_waited_for_until_the_model_is_closed() -> None:
    ledger = Ledger(GenerationLimits(tokens=1000))
    first = ledger.reserve(TALK, 500, OPEN)
    threading.Timer(0.1, ledger.settle, (first, (10, 10))).start()
    start = time.monotonic()
    ledger.reserve(TALK, 500, OPEN)
    assert time.monotonic() - start > 0.05
    closed = threading.Event()
    threading.Timer(0.1, closed.set).start()
    with pytest.raises(Cancelled):
        ledger.reserve(TALK, 500, closed)


@needs_packages
def test_an_answer_that_never_came_counts_in_full() -> None:
    with ModelServer(["one two three", Reply(before=5.0), "text"]) as server:
        limits = GenerationLimits(tokens=320)
        model = make_model(served(server, answer_tokens=100, limits=limits, timeout=0.2, retries=0))
        model.ask(TALK)
        with pytest.raises(ModelFailed):
            model.ask(TALK)
        with pytest.raises(BudgetSpent):
            model.ask(TALK)
    assert len(server.requests) == 2
