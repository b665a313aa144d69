"""Secrets are hidden in a text and in a command by their form or name, and words that look alike stay."""

from __future__ import annotations

import itertools
import time

import pytest

from profkit.runtime.passes.secrets import HIDDEN, hide_secrets, mask_command

S = "q7Zt9wLx2Vb4Kd"
# Each with the secret S; nothing of it may be left.
NAMED = f"""
auth token={S}
the password is password={S}
auth: password={S}
credentials token: {S}
token key auth password={S}
PASS={S}
env PASS={S} python x.py
env DATABASE_URL=postgres://u:{S}@h:5432/db python x.py
DB_PASSWORD={S}
MYSQL_PWD={S}
SMTP_PASS={S}
pass={S}
export AWS_SECRET_ACCESS_KEY={S}
aws_session_token = {S}9999
AccountKey={S}
clientSecret: '{S}'
--client-secret {S}
--pw {S}
--passphrase {S}
--token {S}
token={S}
--api-key={S}
HF_TOKEN={S}
GITHUB_TOKEN={S}
X-Api-Key: {S}
Authorization: Bearer {S}
authorization: basic {S}
Proxy-Authorization: Basic {S}
Cookie: session={S}
{{"password": "{S}"}}
{{'api_key': '{S}'}}
password: {S}
redis-cli -a {S}
https://u:{S}@h/x
redis://:{S}@h:1/0
https://h/x?sig={S}
https://h/?access_token={S}&b=1
""".strip().splitlines()
# Told by their own form, whatever stands around them. Put together here, so that no scanner takes them for real ones.
TOKENS = [
    prefix + "".join(itertools.islice(itertools.cycle("aB3dE9"), length))
    for prefix, length in (
        ("ghp_", 36), ("gho_", 36),
        ("github_pat_", 40), ("glpat-", 20), ("sk-", 48), ("sk-proj-", 40),
        ("sk-ant-api03-", 40),
        ("hf_", 34), ("xoxb-1234567890-", 24), ("AIza", 35), ("npm_", 36), ("pypi-", 60), ("sk_live_", 24),
        ("dckr_pat_", 27),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.", 20), ("ya29.", 40),
    )
] + ["AKIA" + "ABCDEFGH" * 2]  # fmt: skip
_LOOK_ALIKE = [
    "max_tokens", "tokens", "n_tokens", "tokenizer", "pad_token_id", "eos_token_ids", "key_size",
    "keyboard", "keyframes",
    "monkey", "author", "authority", "passes", "bypass", "compass", "secretary", "passenger", "passport",
    "tokenize", "hotkeys",
]  # fmt: skip
_LINES = (
    "{}=512", "--{} 512", "{}: 512", "{} = 512", "the {} is here", "def {}(self):", '"{}": 12,', "{}.py:12 70.1 %",
    "pass 3 of 4: {}", "self.{} = None",
)  # fmt: skip
HARMLESS = [line.format(word) for word in _LOOK_ALIKE for line in _LINES] + [
    "pass: timing",
    "token = ids[i]",
    "f(token=next_token)",
    "password = getpass.getpass()",
    "PWD=/home/a",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "docker run -p 80:80 image",
    "python train.py --keep-passes 3 --auth-mode none --key-bits=4096",
    "the auth and the key are read from the environment",
    "password: ***",
    "token: null",
    "API_KEY=$API_KEY",
]


# Commands word by word, `|` between two, each with the secret S.
COMMANDS = f"""
curl|-H|X-Api-Key: {S}|http://x
curl|-H|Authorization: Bearer {S}
http|GET|h|X-Auth-Token:{S}
curl|-H|PRIVATE-TOKEN: {S}
curl|-H|Cookie: session={S}
tool|--pw|{S}
tool|--bearer|{S}
tool|--db-password|{S}
tool|--secret={S}
redis-cli|-h|h|-a|{S}
sudo|-n|env|A=1|sshpass|-p|{S}|ssh|h
""".strip().splitlines()
HARMLESS_COMMANDS = """
tool|--header|Accept: text/html
redis-cli|-p|6379|PING
docker|run|-p|80:80|image
python|train.py|--max-token|512
python|train.py|--author|jane
""".strip().splitlines()


@pytest.mark.parametrize("line", COMMANDS)
def test_a_secret_of_a_command_is_hidden_by_its_place_and_the_same_in_a_text(line: str) -> None:
    words = line.split("|")
    masked, values = mask_command(words)
    assert S not in " ".join(masked)
    assert any(S in value for value in values)
    assert S not in hide_secrets(f"it ran {' '.join(words)}", lambda _: HIDDEN)


@pytest.mark.parametrize("line", HARMLESS_COMMANDS)
def test_a_command_that_looks_alike_stays_as_it_is(line: str) -> None:
    words = tuple(line.split("|"))
    assert mask_command(words) == (words, ())
    text = f"it ran {' '.join(words)}"
    assert hide_secrets(text, lambda _: HIDDEN) == text


@pytest.mark.parametrize("line", NAMED)
def test_a_secret_behind_a_name_is_hidden_in_a_text_and_in_a_prefix(line: str) -> None:
    assert S not in hide_secrets(line, lambda _: HIDDEN)
    assert S not in " ".join(mask_command(("profkit", "profile", "--on", f"prefix:{line}"))[0])


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: token[:6])
def test_a_token_is_hidden_wherever_it_stands(token: str) -> None:
    for line in (token, f"login failed for {token}, try again", f"--x={token}", f"auth {token}"):
        assert token not in hide_secrets(line, lambda _: HIDDEN)
        assert token not in " ".join(mask_command(("python", "x.py", line))[0])


def test_lines_that_look_alike_stay_as_they_are() -> None:
    changed = {line: shown for line in HARMLESS if (shown := hide_secrets(line, lambda _: HIDDEN)) != line}
    assert changed == {}


@pytest.mark.thorough
@pytest.mark.timed
@pytest.mark.parametrize(
    "unit", ["key ", "key=", "token=x(", "auth token=a ", "-----BEGIN ", "--token ", "eyJ"]
)
def test_ten_times_the_text_takes_no_hundred_times_as_long(unit: str) -> None:
    def seconds(size: int) -> float:
        start = time.process_time()
        hide_secrets(unit * (size // len(unit)), lambda _: HIDDEN)
        return time.process_time() - start

    assert seconds(300_000) < 30 * seconds(30_000) + 0.05
