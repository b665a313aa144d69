"""Secrets among a workload's arguments: the workload gets them, and nothing that is written shows them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from cli_runner import profkit, runs

from profkit.core import process
from profkit.runtime.passes.secrets import hide_secrets, mask_command
from tests.spoken import spoken_notes

QUICK = ("--backend", "cpu", "--sampling", "0.1", "--depth", "gate", "--precision", "0.5", "--quiet")
PASSWORD, TOKEN, SHORT = "correct-horse", "ghp_" + "a1B2" * 9, "xY9"
SCRIPT = f"""
import sys
words = sys.argv[1:]
assert words == ["--password", "{PASSWORD}", "--hf-token={TOKEN}", "--pin-secret", "{SHORT}", "--lr", "1e-3"], words
print("called with", *words)
print("{PASSWORD[:4]}", end="", flush=True)
print("{PASSWORD[4:]}", flush=True)
sum(range(100_000))
"""


@pytest.mark.parametrize(
    ("command", "masked"),
    [
        ("t.py --password hunter2 -v", "t.py --password *** -v"),
        ("t.py --token=abc --api-key k --apiKey=k", "t.py --token=*** --api-key *** --apiKey=***"),
        ("env HF_TOKEN=abc AWS_ACCESS_KEY_ID=AK t.py", "env HF_TOKEN=*** AWS_ACCESS_KEY_ID=*** t.py"),
        ("t.py db.password=x wandb.api_key=y", "t.py db.password=*** wandb.api_key=***"),
        ("t.py https://u:pw@h/x?key=abc&n=3", "t.py https://***@h/x?key=***&n=3"),
        ("t.py sk-0123456789abcdefghij", "t.py ***"),
        # of language models, and what only looks alike
        ("t.py --max-token 128 --pad_token=<pad> --eos-token </s>", None),
        ("t.py --tokenizer gpt2 --token-count 3 --num-tokens=9 --key data", None),
        ("t.py --password --secret", None),
        ("t.py --token 1024 PWD=/home --password=$PASSWORD", None),
    ],
)
def test_an_argument_is_hidden_by_its_name_or_its_form(command: str, masked: str | None) -> None:
    assert " ".join(mask_command(command.split())[0]) == (masked or command)


@pytest.mark.parametrize(
    ("command", "masked"),
    [
        ("mysql -u root -phunter2 db", "mysql -u root -p*** db"),
        ("mongosh -u u -p hunter2 host", "mongosh -u u -p *** host"),
        ("sshpass -p hunter2 ssh -p 22 h", "sshpass -p *** ssh -p 22 h"),
        ("sudo -n sshpass -phunter2 ssh h", "sudo -n sshpass -p*** ssh h"),
        ("curl -u bob:hunter2 --proxy-user p:x https://h", "curl -u bob:*** --proxy-user p:*** https://h"),
        ("curl -ubob:hunter2 --user=b:x https://h", "curl -ubob:*** --user=b:*** https://h"),
        ("redis-cli -a hunter2 --pass x ping", "redis-cli -a *** --pass *** ping"),
        ("wget --password hunter2 --http-password=x u", "wget --password *** --http-password=*** u"),
        ("7z x -phunter2 a.7z", "7z x -p*** a.7z"),
        ("docker login -u bob -p hunter2", "docker login -u bob -p ***"),
        (
            "env PGPASSWORD=hunter2 MYSQL_PWD=x t.py -Dpassword=y",
            "env PGPASSWORD=*** MYSQL_PWD=*** t.py -Dpassword=***",
        ),
        ("t.py --pass hunter2 --db-pass=x", "t.py --pass *** --db-pass=***"),
        ("t.py sk_live_0123456789abcdef0123", "t.py ***"),
        # no passwords
        ("docker run -p 80:80 image", None),
        ("psql -p 5432 -U bob db", None),
        ("t.py --format zip -P 4 --pass 2 --n-pass 3", None),
        ("curl -u bob https://h", None),
        ("t.py -p hunter2", None),
    ],
)
def test_a_password_is_hidden_where_a_known_program_takes_one(command: str, masked: str | None) -> None:
    assert " ".join(mask_command(command.split())[0]) == (masked or command)
    shell = mask_command(["sh", "-c", f"cd x && {command}; ls"])[0][2]
    if not command.startswith("t.py"):
        assert shell == f"cd x && {masked or command}; ls"


def test_a_password_of_a_known_program_goes_from_a_text_with_its_quotes_and_all_else_stays() -> None:
    text = 'range 3: \'mysql -p"a b" db\' then curl -s -u "bob:hunter2" https://h | sh -p x'
    hidden = hide_secrets(text, lambda _: "***")
    assert "hunter2" not in hidden
    assert hidden.endswith("https://h | sh -p x")
    assert hide_secrets("the zip -Program, a http -agent", lambda _: "***").startswith("the zip")


def test_secrets_in_a_line_for_a_shell_are_hidden_one_by_one() -> None:
    words, values = mask_command(
        ["sh", "-c", "curl -H 'Authorization: Bearer abc123def' --password hunter2 x"]
    )
    assert words[2] == "curl -H 'Authorization: Bearer ***' --password *** x"
    assert values == ("abc123def", "hunter2")
    program = "import m; m.run(token=next_token, password=ask(1)); token = ids2[0]; m.api_key = keys[3]"
    assert mask_command(["python", "-c", program]) == (("python", "-c", program), ())
    assert (
        hide_secrets("std::token::next the token is here", lambda _: "***")
        == "std::token::next the token is here"
    )


@pytest.mark.thorough
def test_a_run_is_of_the_real_command_and_holds_no_secret_of_it(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(SCRIPT)
    command = (
        "python",  # the path of another one may be too long for a line of the screen
        "work.py",
        "--password",
        PASSWORD,
        f"--hf-token={TOKEN}",
        "--pin-secret",
        SHORT,
    )
    line = ("profile", *QUICK, "--passes", "timing,cprofile,stacks")
    said = profkit(*line, "--", *command, "--lr", "1e-3", cwd=tmp_path)
    assert said.code == 0, said.err
    (run,) = runs(tmp_path / "reports")
    assert run["workload"]["command"][2:] == [
        "--password",
        "***",
        "--hf-token=***",
        "--pin-secret",
        "***",
        "--lr",
        "1e-3",
    ]
    assert any("--keep-arguments" in note for note in spoken_notes(run))
    assert profkit("history", "add", *(tmp_path / "reports").iterdir(), cwd=tmp_path).code == 0
    files = [path for path in (tmp_path / "reports").rglob("*") if path.is_file()]
    assert any(b"called with --password ***" in path.read_bytes() for path in files)
    for path in files:
        for secret in (PASSWORD, TOKEN):
            assert secret.encode() not in path.read_bytes(), path
    assert PASSWORD not in said.out + said.err
    assert "--pin-secret [masked]" in said.out
    plan = profkit(*line, "--plan", "--format", "json", "--", *command, cwd=tmp_path)
    assert PASSWORD not in plan.out


@pytest.mark.parametrize(("kept", "shown"), [((), "***"), (("--keep-arguments",), PASSWORD)])
def test_a_workload_that_fails_is_told_without_its_secrets_unless_the_user_wants_them(
    tmp_path: Path, kept: tuple[str, ...], shown: str
) -> None:
    code = "import sys; sys.exit('cannot log in with ' + sys.argv[2])"
    line = (
        "profile",
        *QUICK,
        *kept,
        "--passes",
        "timing",
        "--",
        sys.executable,
        "-c",
        code,
        "--token",
        PASSWORD,
    )
    said = profkit(*line, cwd=tmp_path)
    assert said.code == 4
    assert f"cannot log in with {shown}" in said.err
    (run,) = runs(tmp_path / "reports")
    assert f"cannot log in with {shown}" in run["failure"]
    assert run["workload"]["command"][-1] == shown


def test_a_secret_that_comes_in_pieces_is_no_more_shown_than_a_whole_one(tmp_path: Path) -> None:
    code = f"import sys, time\nfor c in 'a{PASSWORD}b{PASSWORD}':\n    print(c, end='', flush=True); time.sleep(0.002)"
    outcome = process.run([sys.executable, "-c", code], log=tmp_path / "log", hidden=[PASSWORD])
    assert outcome.output_tail == "a***b***"
    assert (tmp_path / "log").read_text() == "a***b***"
