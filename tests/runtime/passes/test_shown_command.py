"""Of a command others see what is known to be harmless; of a text, what has no form and no name of a secret.

The forms and the lines of tests/data/secrets were written without a look at the code, `unseen` after it was mended: no
form of it changed anything, its harmless commands did (16 of 30 had a masked value, before numbers and files were
shown). A secret stands there in two parts, so that no scanner takes one for real.
"""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path

import pytest
from cli_runner import profkit, runs

from profkit.runtime.passes.secrets import HIDDEN, hide_secrets, looks_random
from profkit.runtime.passes.shown_command import (
    HARMLESS,
    MASK,
    file_to_type,
    line_to_type,
    shown_command,
    shown_line,
)

DATA = Path(__file__).parents[2] / "data" / "secrets"


def forms(name: str) -> list[tuple[str, str, str]]:
    """Kind (`command` or `text`), line and the secret in it."""
    rows = map(json.loads, (DATA / name).read_text(encoding="utf-8").splitlines())
    return [(kind, line.replace("{}", "".join(parts)), "".join(parts)) for kind, line, parts in rows]


def lines(name: str) -> list[str]:
    return (DATA / name).read_text(encoding="utf-8").splitlines()


def words_of(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return ["sh", "-c", line]


def has_some_of(text: str, secret: str) -> bool:
    """Whether six characters of the secret stand in the text, or all of a shorter one."""
    size = min(6, len(secret))
    return any(secret[at : at + size] in text for at in range(len(secret) - size + 1))


@pytest.mark.parametrize("name", ["forms.jsonl", "unseen.jsonl"])
def test_no_form_of_a_secret_is_shown_as_an_argument_however_it_is_given(name: str) -> None:
    shown_secrets = []
    for _, line, secret in forms(name):
        words = words_of(line)
        for given in (
            words,
            ["sh", "-c", line],
            ["python", "x.py", line],
            ["python", "x.py", *words],
            ["python", "-c", line],
            ["tool", "--config", line],
            ["profkit", "profile", "--", *words],
        ):
            shown = shown_command(given).words
            assert shown_command(shown).words == shown  # what was masked once is shown alike again
            if has_some_of(shown_line(given), secret):
                shown_secrets.append((given, shown_line(given)))
    assert shown_secrets == []


@pytest.mark.parametrize(("name", "most"), [("forms.jsonl", 31), ("unseen.jsonl", 26)])
def test_free_text_shows_no_more_forms_of_secrets_than_are_known_to_have_none(name: str, most: int) -> None:
    found = [
        line for _, line, secret in forms(name) if has_some_of(hide_secrets(line, lambda _: HIDDEN), secret)
    ]
    assert len(found) <= most, found


@pytest.mark.parametrize("name", ["harmless.txt", "harmless-unseen.txt"])
def test_harmless_lines_stay_in_a_text(name: str) -> None:
    assert [line for line in lines(name) if hide_secrets(line, lambda _: HIDDEN) != line] == []


@pytest.mark.parametrize(("name", "most"), [("harmless.txt", 8), ("harmless-unseen.txt", 10)])
def test_harmless_commands_stay_readable(name: str, most: int) -> None:
    commands = lines(name)
    commands = commands[: next((at for at, line in enumerate(commands) if line.startswith("The ")), None)]
    changed = [shown_line(words_of(line)) for line in commands if not shown_command(words_of(line)).whole]
    assert len(changed) <= most, changed
    assert all(MASK in line for line in changed)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("python train.py --batch-size 64 --lr=3e-4 -v", None),
        ("OMP_NUM_THREADS=4 ./build/bench --size 1024x1024 data/in.csv", None),
        ("python train.py optimizer=adamw +model.hidden=512", None),
        ("sh -c 'cd build && make -j8'", None),
        ("/home/ann/x/train.py --data /home/ann/d.csv", "train.py --data d.csv"),
        ("python t.py --otp 123456 --name bob", f"python t.py --otp {MASK} --name {MASK}"),
        ("python t.py hunter2 --x=hunter2 A=b", f"python t.py {MASK} --x={MASK} A={MASK}"),
        ("python t.py --password --hunter", f"python t.py --password {MASK}"),
        ("python t.py --password=*** --token ***", f"python t.py --password={MASK} --token {MASK}"),
        ("curl -su ann:x https://h -uann:x", f"curl -su {MASK} {MASK} -u{MASK}"),
        ("sh -c 'P=x python t.py --key \"a b\"'", f"sh -c 'P={MASK} python t.py --key {MASK}'"),
        ("python t.py --seed 123456789 --unknown 123456", f"python t.py --seed 123456789 --unknown {MASK}"),
    ],
)
def test_an_argument_is_shown_by_its_name_and_its_value(command: str, shown: str | None) -> None:
    assert shown_line(shlex.split(command)) == (shown or command)


def test_the_user_says_which_arguments_are_harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["python", "t.py", "--run_name", "Bob s", "--prompt=Hi you", "--password", "hunter2", "x y"]
    assert shown_command(words).masked == 4
    monkeypatch.setenv(HARMLESS, "run-name, --prompt")
    shown = shown_command(words)
    assert (shown.words[3], shown.words[4], shown.masked) == ("Bob s", "--prompt=Hi you", 2)
    token = "gh" + "p_" + "a1B2" * 9
    assert token not in shown_line(["python", "t.py", "--prompt", f"use {token}"])
    monkeypatch.setenv(HARMLESS, "all")
    assert shown_command(words).words == (*words[:6], MASK, "x y")


def test_a_line_to_type_has_the_whole_command_or_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert line_to_type(["python", "t.py", "--size", "3"]) == "python t.py --size 3"
    assert line_to_type(["python", "t.py", "--name", "bob"]) == "COMMAND"
    assert line_to_type(["python", "t.py", "--name", "bob"], "OTHER") == "OTHER"
    monkeypatch.setenv(HARMLESS, "all")
    assert line_to_type(["python", "t.py", "--name", "a;b"]) == "python t.py --name 'a;b'"
    assert line_to_type(["python", "t.py", "--name", "a\nb"]) == "COMMAND"  # a screen shows another character


def test_a_file_to_type_is_one_that_is_shown_whole() -> None:
    for path in ("kernels/", "my_kernels.py", "./k/a.py", "/usr/lib/x.py"):
        assert file_to_type(path, "FILE") == path
    for path in ("/tmp/evil.py", "../evil.py", "~/evil.py", "$(evil).py", "a b.py", "--option", "x\n.py", ""):
        assert file_to_type(path, "FILE") == "FILE", path


def test_names_that_compilers_make_are_no_tokens() -> None:
    kernels = [path.read_text(errors="replace") for path in (DATA.parent / "cuda").rglob("*.csv")]
    words = {word for text in kernels for word in text.replace(",", " ").replace("(", " ").split()}
    assert [word for word in words if looks_random(word.strip('"'))] == []
    assert not looks_random("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEEEEvi")
    assert not looks_random("3f786850e387550fdab836ed7e6dc881de23001b")


@pytest.mark.thorough
@pytest.mark.timed
@pytest.mark.parametrize(
    "unit",
    ['password="', 'password=\\"', "aB1aB1", "://a:", '"name": "token", "value', "token=SecretStr(", "<password ",
     "Authorization: Digest a=", "ENV A_TOKEN ", 'login("', "password is ", "$2b$", "'a\\"],
)  # fmt: skip
def test_four_times_the_text_takes_no_sixteen_times_as_long(unit: str) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        start = time.process_time()
        hide_secrets(text, lambda _: HIDDEN)
        shown_command(["python", text, "--x", text, "sh", "-c", text])
        return time.process_time() - start

    small = min(seconds(250_000), seconds(250_000))
    assert seconds(1_000_000) < 10 * small + 0.2


def test_a_run_keeps_its_command_for_its_owner_and_shows_what_is_harmless(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("print(sum(range(100_000)))")
    command = ("python", "work.py", "--batch-size", "8", "--otp", "935172", "blau haus")
    line = ("profile", "--backend", "cpu", "--sampling", "0.1", "--precision", "0.5", "--passes", "timing")
    said = profkit(*line, "--", *command, cwd=tmp_path)
    assert said.code == 0, said.err
    (run,) = runs(tmp_path / "reports")
    (folder,) = (tmp_path / "reports").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "run.json").stat().st_mode & 0o777 == 0o600
    assert run["workload"]["command"][-1] == "blau haus"
    scrubbed = profkit("scrub", str(folder), "--output", "public", cwd=tmp_path)
    assert scrubbed.code == 0, scrubbed.err
    copies = [path for path in (tmp_path / "public").rglob("*") if path.is_file()]
    for path in (folder / "report.md", folder / "report.html", *copies):
        text = path.read_text(encoding="utf-8")
        assert "935172" not in text, path
        assert "blau haus" not in text, path
        if path.name == "report.md":
            assert f"python work.py --batch-size 8 --otp {MASK} {MASK}" in text
            assert "2 arguments of the command are [masked] here" in text.replace("\\", "")
    for text in (
        said.out + said.err,
        profkit("compare", str(folder), str(folder), "--format", "markdown", cwd=tmp_path).out,
        *(
            profkit(*words, "--format", "json", cwd=tmp_path).out
            for words in (
                ("report", folder),
                ("summarize", folder, folder),
                ("check", folder),
                ("history", "add", folder),
            )
        ),
        profkit("history", "show", "--format", "json", cwd=tmp_path).out,
        profkit("report", str(folder), "--format", "junit", cwd=tmp_path).out,
    ):
        assert "935172" not in text
        assert "blau haus" not in text


def test_the_plugin_that_profkit_names_itself_is_shown() -> None:
    """Each page of `pytest --profkit-test` had a note about an argument that profkit had put there."""
    shown = shown_command(["python", "-m", "pytest", "-p", "profkit.fronts.pytest_plugin", "-p", "hunter2"])
    assert shown.words[-3:] == ("profkit.fronts.pytest_plugin", "-p", "[masked]")
