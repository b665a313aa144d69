"""What a file of a user's adds, and what is said of one that adds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.errors import UsageError
from profkit.kernels.operations.registry import has_implementation, implementations, register_files

HEAD = "from profkit.sweep import implementation\n"
MINE = "@implementation('GELU', 'mine')\ndef build(problem):\n    return lambda: None\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "it's <mine>.py"


def test_what_it_prints_is_in_no_document_and_it_may_import_what_lies_beside_it(
    file: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file.with_name("beside_it.py").write_text("x = 1\n")
    file.write_text(f"import beside_it\nprint('hello')\n{HEAD}{MINE}")
    assert register_files([file]) == ("mine",)
    assert capfd.readouterr() == ("", "hello\n")
    assert has_implementation("mine", "GELU")
    assert not has_implementation("mine", "Swish")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (None, "does not exist"),
        ("import sys; sys.exit('no')", "SystemExit: no"),
        ("def (", "SyntaxError: invalid syntax"),
        ("import nothing_of_that_name", "cannot be run: ModuleNotFoundError"),
        ("\n", "registers no implementation"),
        (HEAD + "implementation('Conv', 'x')", "there is no operation called 'Conv'"),
        (HEAD + "implementation('GELU', 'half \\udc80')", "is not a name of an implementation"),
    ],
)
def test_what_it_does_instead_is_told(file: Path, body: str | None, said: str) -> None:
    if body is not None:
        file.write_text(body)
    with pytest.raises(UsageError) as fault:
        register_files([file])
    assert said in fault.value.message
    assert fault.value.fix


def test_a_file_may_be_run_again_and_two_may_share_a_name(file: Path) -> None:
    file.write_text(HEAD + MINE + "raise ValueError('not yet')\n")
    with pytest.raises(UsageError, match="not yet"):
        register_files([file])
    file.write_text(HEAD + MINE)
    assert register_files([file]) == register_files([file]) == ("mine",)
    other = file.with_name("other.py")
    other.write_text((HEAD + MINE).replace("GELU", "Swish"))
    assert register_files([file, other]) == ("mine",)
    assert implementations().count("mine") == 1
    other.write_text(HEAD + MINE)
    with pytest.raises(UsageError, match="already"):
        register_files([file, other])
