"""Keys leave the environment, and stand in no text."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from profkit.generation.keys import (
    command_keys,
    find_key,
    hide_secrets,
    http_options,
    is_local,
    learn_address,
    learn_secret,
    server_of,
    without_keys,
    without_secrets,
)

KEY = "sk-proj-AbCdEfGh0123456789ijklmnop-QRSTuvwx"


def test_a_key_leaves_the_environment_and_is_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", f"{KEY}\n")
    monkeypatch.setenv("MY_KEY", "another-key")
    hide_secrets("MY_KEY")
    assert not {"ANTHROPIC_API_KEY", "MY_KEY"} & os.environ.keys()
    for _ in range(2):
        key = find_key("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
        assert key is not None
        assert (key.variable, key.value) == ("ANTHROPIC_API_KEY", KEY)
        assert KEY not in repr(key)
    assert command_keys("MY_KEY") == {"MY_KEY": "another-key"}
    assert "MY_KEY" not in command_keys(None)
    assert find_key("OPENAI_API_KEY") is None


def test_a_program_of_the_user_gets_no_secret_but_those_that_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secrets = {
        "AWS_SECRET_ACCESS_KEY": "aws-secret-value",
        "GITHUB_TOKEN": "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "DATABASE_URL": "postgres://u:hunter2hunter@host/db",
        "MY_SECRET": "my-secret-value",
        "GATEWAY_KEY_FOR_THIS": "gateway-value",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    hide_secrets("AWS_SECRET_ACCESS_KEY,GATEWAY_KEY_FOR_THIS")
    assert not secrets.keys() & os.environ.keys()
    assert {"PATH", "HOME"} <= os.environ.keys()
    named = {name: secrets[name] for name in ("AWS_SECRET_ACCESS_KEY", "GATEWAY_KEY_FOR_THIS")}
    assert command_keys("AWS_SECRET_ACCESS_KEY,GATEWAY_KEY_FOR_THIS") == named
    assert not secrets.keys() & command_keys(None).keys()


def test_what_is_started_afterwards_has_no_key_and_cannot_look_into_this_process() -> None:
    code = (
        "import ctypes, os, subprocess; from profkit.generation.keys import hide_secrets; hide_secrets();"
        "print(subprocess.run(['env'], capture_output=True, text=True).stdout);"
        "print('dumpable', ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    environment = {**os.environ, "OPENAI_API_KEY": KEY, "OPENAI_CUSTOM_HEADERS": f"x-key: {KEY}"}
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert KEY not in shown.stdout
    if sys.platform == "linux":
        assert shown.stdout.endswith("dumpable 0\n")


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        (f"Bearer {KEY} is wrong", "Bearer [key] is wrong"),
        (f"begins with {KEY[:14]}", "begins with [key]"),
        (f"holds {KEY[5:20]} and {KEY[-9:]}", "holds [key] and [key]"),
    ],
)  # fmt: skip
def test_a_text_is_cleaned_of_a_key_and_of_long_parts_of_it(text: str, cleaned: str) -> None:
    learn_secret(KEY)
    assert without_keys(text) == cleaned


def test_an_address_hides_who_asks() -> None:
    url = "http://someone:p%40ssw0rd@models.example:8080/v1"
    learn_address(url)
    text = without_keys(f"no answer from {url}, with p@ssw0rd")
    assert not any(part in text for part in ("someone", "p%40ssw0rd", "p@ssw0rd"))
    assert server_of(url) == "models.example:8080"
    assert server_of("https://[::1]/v1") == "[::1]"


@pytest.mark.parametrize(
    ("url", "local"),
    [("http://localhost:8000/v1", True), ("http://127.0.0.1/v1", True), ("http://[::1]:1", True),
     ("http://127.example.org", False), ("https://models.example", False)],
)  # fmt: skip
def test_a_server_on_this_machine_is_reached_past_any_proxy(url: str, local: bool) -> None:
    assert is_local(url) is local
    assert ("mounts" in http_options(url)) is local


def test_what_a_package_would_log_has_headers_in_it_and_is_not_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging.getLogger("openai"), "level", logging.DEBUG)
    hide_secrets()
    logging.getLogger("openai._base_client").debug("headers: %s", {"Authorization": f"Bearer {KEY}"})
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("https://user:p@ss@host:8000/v1?key=secret", "https://host:8000/v1"),
        ("--base-url=http://token@host/v1", "--base-url=http://host/v1"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        ("is it a?b", "is it a?b"),
    ],
)
def test_a_command_line_is_written_without_users_passwords_and_queries(word: str, written: str) -> None:
    assert without_secrets([word]) == (written,)
