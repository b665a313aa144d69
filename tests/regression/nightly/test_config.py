"""A nightly's file: what is read of it, and that whatever is wrong is refused with its line and what to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.errors import UsageError
from profkit.regression.nightly.config import EXAMPLE, read_config

SMALLEST = "version: 1\nworkloads:\n  - name: a\n    command: [python, a.py]\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "night.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_least_file_has_defaults_for_all_else(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, SMALLEST))
    assert config.name == "night"
    assert config.output == tmp_path / "reports"
    assert config.history == tmp_path / "reports" / "history.sqlite"
    assert [w.command for w in config.workloads] == [("python", "a.py")]
    assert config.workloads[0].cwd == tmp_path
    assert config.workloads[0].declared == ("time.median",)
    assert (config.paired, config.pairs.budget) == ("always", None)


def test_the_example_is_a_file_that_can_be_read(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, EXAMPLE.read_text()))
    assert [w.name for w in config.workloads] == ["gated_mlp", "layer_norm"]
    assert config.budget == 7200


def test_a_workload_takes_what_it_does_not_say_from_the_defaults(tmp_path: Path) -> None:
    config = read_config(
        written(
            tmp_path,
            "version: 1\ndefaults: {budget: 2 min, env: {A: '1', B: '2'}, floors: {time.median: 3 %}, gates: []}\n"
            "workloads:\n  - {name: a, command: x 'y z', env: {B: 3}}\n  - {name: b, command: [x], budget: 1 h}\n",
        )
    )
    first, second = config.workloads
    assert (first.command, first.env, first.budget) == (("x", "y z"), {"A": "1", "B": "3"}, 120)
    assert second.budget == 3600
    assert first.floors == {"time.median": {"relative": "3 %"}}
    assert first.declared == ()


@pytest.mark.parametrize(
    ("text", "line", "says", "fix"),
    [
        ("", 1, "is not of version 1", "version: 1"),
        ("version: 1\nworkloads: []\n", 2, "at least one", "workloads:"),
        (SMALLEST + "histroy: x\n", 5, "no key 'histroy'; did you mean history", "one of: name"),
        (SMALLEST + "    backends: cpu\n", 5, "no key 'backends'; did you mean backend", "one of: name"),
        (SMALLEST + "    timeout: soon\n", 5, "not a time", "timeout: 600"),
        (SMALLEST + "    timeout: 1e999\n", 5, "not a time", "timeout: 600"),
        (SMALLEST + "    budget: true\n", 5, "not a time", "budget: 600"),
        (SMALLEST + "    precision: 2\n", 5, "not a number from", "precision: 0.01"),
        (SMALLEST + "    floors: {time.median: 2}\n", 5, "not a percentage", "time.median: 2 %"),
        (SMALLEST + "    floors: {time.median: {relativ: 2 %}}\n", 5, "has no 'relativ'", "one of"),
        (SMALLEST + "    floors: {time.median: {gates: true}}\n", 5, "stands under gates", "gates: ["),
        (SMALLEST + '    env: {"A=B": x}\n', 5, "not a name of a variable", "NAME:"),
        (SMALLEST + "  - name: a\n    command: [x]\n", 5, "into one folder", "name: a-2"),
        (SMALLEST + "  - command: [x]\n", 5, "has no name", "name:"),
        (SMALLEST + "  - name: b\n", 5, "has no command", "command:"),
        (SMALLEST + '  - name: b\n    command: "a \'b"\n', 6, "No closing quotation", "command: ["),
        (SMALLEST + "  - {name: b, command: ./b > out.txt}\n", 5, "holds >", '[sh, -c, "./b > out.txt"]'),
        (SMALLEST + "name: 7\n", 5, "name must be text", "in quotes"),
        ("version: 1\nx: &a 1\ny: *a\n", 3, "aliases", "write out"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line_and_what_to_write(
    tmp_path: Path, text: str, line: int, says: str, fix: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read_config(written(tmp_path, text))
    assert f"night.yaml, line {line}: " in caught.value.message
    assert says in caught.value.message
    assert fix in (caught.value.fix or "")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda p: None, "there is no configuration"),
        (lambda p: p.mkdir(), "is a folder"),
        (lambda p: p.write_bytes(b"\xff\xfe\x00"), "not UTF-8"),
        (lambda p: p.write_bytes(b"#" * (2 << 20)), "larger"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, make: object, says: str) -> None:
    path = tmp_path / "night.yaml"
    make(path)  # type: ignore[operator]
    with pytest.raises(UsageError, match=says) as fault:
        read_config(path)
    assert fault.value.fix
