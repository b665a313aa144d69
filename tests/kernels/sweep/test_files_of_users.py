"""What a file of a user's adds is asked of a process of its own, whatever the file does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from profkit.core.errors import UsageError
from profkit.core.types import GridPoint
from profkit.kernels.operations import registry
from profkit.kernels.operations.definitions import Problem
from profkit.kernels.operations.registry import Unavailable, build_call, has_implementation, implementations
from profkit.kernels.sweep.files import inspect_files, register_files

HEAD = "from profkit.sweep import implementation\n"
MINE = "@implementation('GELU', 'mine')\ndef build(problem):\n    return lambda: None\n"


@pytest.fixture(autouse=True)
def _nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "it's <mine>.py"


def test_what_it_prints_and_changes_stays_there(
    file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)
    file.write_text(f"import os, threading, time\nprint('hello')\nos.chdir('/')\n{HEAD}{MINE}")
    with file.open("a") as more:
        more.write("threading.Thread(target=time.sleep, args=(100,)).start()\n")
    assert inspect_files([file], 30.0) == ("mine",)
    assert capfd.readouterr() == ("", "")
    assert Path.cwd() == file.parent
    assert has_implementation("mine", "GELU")
    assert not has_implementation("mine", "Swish")
    with pytest.raises(Unavailable, match="another process"):
        build_call("mine", Problem(GridPoint("GELU", 1, 1, 1), registry.OPERATIONS["GELU"], ()))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import os; os._exit(0)", "its process exited with 0"),
        ("import os; print('last words'); os.kill(os.getpid(), 11)", "its process was killed by SIGSEGV"),
        ("import sys; sys.exit('no')", "SystemExit: no"),
        ("raise KeyboardInterrupt", "its process was killed by SIGINT: KeyboardInterrupt"),
        ("import time; time.sleep(100)", "it took longer than 0.5 s"),
        ("def (", "SyntaxError: invalid syntax"),
        ("\n", "registers no implementation"),
        (HEAD + "implementation('Conv', 'x')", "there is no operation called 'Conv'"),
        (HEAD + "implementation('GELU', 'half \\udc80')", "is no name of an implementation"),
    ],
)
def test_what_it_does_instead_is_told(file: Path, body: str, said: str) -> None:
    file.write_text(body)
    with pytest.raises(UsageError) as fault:
        inspect_files([file], 0.5 if "sleep" in body else 30.0)
    assert said in fault.value.message
    assert fault.value.fix


def test_a_file_may_be_run_again_and_two_may_share_a_name(file: Path) -> None:
    file.write_text(HEAD + MINE + "raise ValueError('not yet')\n")
    with pytest.raises(UsageError, match="not yet"):
        register_files([file])
    file.write_text(HEAD + MINE)
    for ask in (register_files, register_files, lambda files: inspect_files(files, 30.0)):
        assert ask([file]) == ("mine",)
    other = file.with_name("other.py")
    other.write_text((HEAD + MINE).replace("GELU", "Swish"))
    other.write_text(other.read_text() + MINE.replace("GELU", "Swish").replace("'mine'", "'also'"))
    with ThreadPoolExecutor() as two:  # as two sweeps of one program
        names = [two.submit(inspect_files, [file, other], 30.0) for _ in range(2)]
        assert [one.result() for one in names] == [("mine", "also")] * 2, "in the order of the files"
    assert implementations().count("mine") == 1
    other.write_text(HEAD + MINE)
    with pytest.raises(UsageError, match="already"):
        inspect_files([file, other], 30.0)
