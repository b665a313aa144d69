"""Which model a user's options mean, what it costs, and what is stored of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from profkit.core.errors import MachineError, UsageError
from profkit.core.types import GenerationLimits
from profkit.generation.clients import api_client
from profkit.generation.clients.client import BudgetSpent, Message, ModelFailed
from profkit.generation.clients.registry import ClientOptions, complete_address, make_client, provider_of
from tests.generation.model_server import MODEL, ModelServer, Reply, needs_packages, silence

KEY = "sk-made-up-0123456789abcdefghijklmnop"
TALK = [Message("user", "Write a kernel.")]


@pytest.mark.parametrize(
    ("options", "variables", "provider"),
    [
        (ClientOptions(), ["OPENAI_API_KEY"], "openai"),
        (ClientOptions(), ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"], "anthropic"),
        (ClientOptions(), ["ANTHROPIC_AUTH_TOKEN"], "anthropic"),
        (ClientOptions(provider="openai"), ["ANTHROPIC_API_KEY"], "openai"),
        (ClientOptions(base_url="http://localhost:8000"), ["ANTHROPIC_API_KEY"], "openai"),
        (ClientOptions(base_url="https://gateway.example/anthropic"), [], "anthropic"),
        (ClientOptions(key_env="MY_ANTHROPIC_KEY"), [], "anthropic"),
        (ClientOptions(key_env="GATEWAY_KEY"), [], "openai"),
        (ClientOptions(command="agent {prompt}"), ["ANTHROPIC_API_KEY"], "command"),
    ],
)
def test_who_is_asked(
    options: ClientOptions, variables: list[str], provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in variables:
        monkeypatch.setenv(variable, KEY)
    assert provider_of(options) == provider


def test_without_a_key_the_ways_to_name_a_model_are_said() -> None:
    with pytest.raises(ModelFailed, match=r"no ANTHROPIC_API_KEY.*no --base-url and no --command") as caught:
        make_client(ClientOptions())
    assert caught.value.fix == "export ANTHROPIC_API_KEY=..."
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ClientOptions(provider="nobody"), "no provider is called nobody"),
        (ClientOptions(provider="openai", command="agent {prompt}"), "give one of them"),
        (ClientOptions(model="m", command="agent {prompt}"), "leave --model and --base-url out"),
        (ClientOptions(limits=GenerationLimits(tokens=9), command="agent {prompt}"), "nobody says"),
        (ClientOptions(provider="command"), "needs the command"),
        (ClientOptions(command="agent"), "needs {prompt}"),
        (ClientOptions(command="agent '{prompt}"), "no closing quotation"),
        (ClientOptions(base_url="localhost:8000"), "no address of a server"),
        (ClientOptions(base_url="http://host:port/v1"), "no address of a server"),
        (ClientOptions(base_url="http://[host"), "no address of a server"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: ClientOptions, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_client(options)


@pytest.mark.parametrize("key", ["sk-proj-\N{HORIZONTAL ELLIPSIS}", "export KEY=sk-1234", "sk-1\nsk-2"])
def test_what_is_no_key_is_not_sent(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelFailed, match="what OPENAI_API_KEY holds is no key") as caught:
        make_client(ClientOptions(model="m"))
    assert "sk-" not in caught.value.message


@needs_packages
def test_an_address_of_the_environment_is_known_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://me:word-0123@localhost:8000")
    assert make_client(ClientOptions(model="m")).address == "http://localhost:8000/v1"


def test_an_address_of_the_environment_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8000")
    with pytest.raises(UsageError, match="OPENAI_BASE_URL is no address of a server"):
        make_client(ClientOptions(model="m"))


@pytest.mark.parametrize(
    ("provider", "address", "complete"),
    [
        ("openai", "http://localhost:8000", "http://localhost:8000/v1"),
        ("openai", "http://localhost:8000/", "http://localhost:8000/v1"),
        ("openai", "http://host/openai/v1/chat/completions", "http://host/openai/v1"),
        ("openai", "http://host/api?version=2", "http://host/api?version=2"),
        ("anthropic", "http://host:4000/v1", "http://host:4000"),
        ("anthropic", "http://host/anthropic/v1/messages", "http://host/anthropic"),
    ],
)
def test_an_address_is_completed_as_its_package_wants_it(provider: str, address: str, complete: str) -> None:
    assert complete_address(provider, address) == complete


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(api_client.importlib, "import_module", missing)
    with pytest.raises(MachineError, match="openai is not installed") as caught:
        make_client(ClientOptions(base_url="http://localhost:1", model="m"))
    assert caught.value.fix == "pip install 'profkit[llm]'"


@needs_packages
class TestServed:
    """What needs a server."""

    @pytest.mark.parametrize("provider", ["openai", "anthropic"])
    def test_a_key_goes_to_its_server_and_nowhere_else(
        self, provider: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("GATEWAY_KEY", KEY)
        with ModelServer(["text"]) as server:
            options = ClientOptions(provider=provider, model="m", base_url=server.url, key_env="GATEWAY_KEY")
            made = make_client(options)
            assert made.client.ask(TALK).text == "text"
        headers = server.requests[0].headers
        assert KEY in (headers.get("x-api-key"), headers.get("authorization", "").removeprefix("Bearer "))
        assert "GATEWAY_KEY" not in os.environ
        assert (made.server, made.client.provider, made.client.model) == (server.url[7:], provider, "m")

    @pytest.mark.parametrize("provider", ["openai", "anthropic"])
    def test_what_is_asked_for_with_an_address_is_sent_and_not_shown(self, provider: str) -> None:
        with ModelServer(["text", Reply(status=400, message="no token-0123 of user-0123")]) as server:
            url = server.url.replace("//", "//user-0123:word-0123@") + "?token=token-0123"
            made = make_client(ClientOptions(provider=provider, model="m", base_url=url))
            assert made.client.ask(TALK).text == "text"
            with pytest.raises(ModelFailed, match=r"no \[key\] of \[key\]"):
                made.client.ask(TALK)
        assert server.requests[0].path.endswith("?token=token-0123")
        assert made.server == server.url[7:]
        assert made.address == server.url + ("/v1" if provider == "openai" else "")

    def test_a_bearer_token_is_sent_as_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)
        with ModelServer(["text"]) as server:
            make_client(ClientOptions(provider="anthropic", model="m", base_url=server.url)).client.ask(TALK)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert "x-api-key" not in server.requests[0].headers

    def test_a_server_on_this_machine_needs_no_key_and_may_name_its_only_model(self) -> None:
        with ModelServer(["text"]) as server:
            made = make_client(ClientOptions(base_url=server.url))
            made.client.ask(TALK)
        assert server.requests[0].body["model"] == made.client.model == MODEL
        assert made.notes == (f"{MODEL} is the only model that {server.url[7:]} lists",)

    @pytest.mark.parametrize(("models", "listed"), [([], "a list of none"), (["a", "b", "c"], "a, b and c")])
    def test_of_several_models_the_user_names_one(self, models: list[str], listed: str) -> None:
        with ModelServer([], models=models) as server, pytest.raises(UsageError, match=listed) as caught:
            make_client(ClientOptions(base_url=server.url))
        assert caught.value.fix == "--model NAME"

    def test_a_key_that_is_asked_for_by_name_must_be_there(self) -> None:
        with pytest.raises(
            ModelFailed, match="there is no key for localhost:1: GATEWAY_KEY is not set"
        ) as caught:
            make_client(ClientOptions(base_url="http://localhost:1", key_env="GATEWAY_KEY", model="m"))
        assert caught.value.fix == "export GATEWAY_KEY=..."

    def test_a_limit_stops_before_it_is_passed_also_by_an_answer_that_never_came(self) -> None:
        with ModelServer(["one two three", silence(5), "text"]) as server:
            options = ClientOptions(
                model="m",
                base_url=server.url,
                answer_tokens=100,
                limits=GenerationLimits(tokens=200),
                timeout=0.2,
                retries=0,
            )
            made = make_client(options)
            made.client.ask(TALK)
            assert made.ledger.spent == (3, 3)
            with pytest.raises(ModelFailed):
                made.client.ask(TALK)
            with pytest.raises(BudgetSpent):
                made.client.ask(TALK)
            assert len(server.requests) == 2
        assert made.ledger.spent[1] == 3 + 100

    def test_an_answer_that_is_stored_costs_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        with ModelServer(["first", "second", "of another", "damaged", "refused"]) as server:

            def made(model: str = "m"):  # type: ignore[no-untyped-def]
                return make_client(
                    ClientOptions(model=model, base_url=server.url, answers=tmp_path / "answers")
                )

            one = made()
            assert [one.client.ask(TALK).text for _ in range(2)] == ["first", "second"]
            again = made()
            answers = [again.client.ask(TALK) for _ in range(2)]
            assert [(answer.text, answer.stored) for answer in answers] == [("first", True), ("second", True)]
            assert again.ledger.spent == (0, 0)
            assert made("other").client.ask(TALK).text == "of another"
            files = sorted((tmp_path / "answers").iterdir())
            assert len(files) == 3
            assert not any(KEY in file.read_text() for file in files)
            for file in files:
                file.write_text(file.read_text()[:50])
            assert not made().client.ask(TALK).stored
        document = json.loads(max(files, key=lambda file: file.stat().st_size).read_text())
        assert document["asked_with"] == {
            "answer_tokens": 16384,
            "server": server.url[7:],
            "temperature": None,
        }

    def test_a_failure_is_not_stored(self, tmp_path: Path) -> None:
        with ModelServer([Reply(status=400, message="no"), "text"]) as server:
            made = make_client(ClientOptions(model="m", base_url=server.url, answers=tmp_path))
            with pytest.raises(ModelFailed):
                made.client.ask(TALK)
            assert list(tmp_path.iterdir()) == []
