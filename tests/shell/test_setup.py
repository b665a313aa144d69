"""setup.sh: what it refuses and what it leaves alone. That it sets up needs a bare machine to try."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.sh", "setup/*.sh", "wrappers/*.sh", "ci/*.sh", ".ci/run")
    for path in ROOT.glob(pattern)
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with setup's own files and a Python project, and nothing made yet."""
    folder = tmp_path / "a clone"
    shutil.copytree(ROOT / "setup", folder / "setup")
    for name in ("setup.sh", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    return folder


def setup(clone: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(clone / "setup.sh"), *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(clone), "PROFKIT_APT": "0", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def made_by_setup(clone: Path) -> None:
    """What a finished setup leaves, as far as a second call looks."""
    (clone / ".venv/bin").mkdir(parents=True)
    (clone / ".venv/bin/python").symlink_to("/bin/true")
    checksum = subprocess.run(
        ["cksum"], input=(clone / "pyproject.toml").read_bytes(), capture_output=True
    ).stdout.decode()
    (clone / ".venv/profkit-setup").write_text(f"{clone}|{checksum.strip()}|base\n")
    for note in ("profkit-python", "profkit-torch", "profkit-profilers"):
        (clone / ".venv" / note).touch()


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "sentence"),
    [
        (("--fast",), {}, 2, "unknown option --fast"),
        ((), {"PYTHON": "no-such-python"}, 3, "PYTHON=no-such-python is not there"),
        ((), {"PYTHON": "/bin/false"}, 3, "is no Python 3.10 or newer"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(
    clone: Path, arguments: tuple[str, ...], environment: dict[str, str], code: int, sentence: str
) -> None:
    done = setup(clone, *arguments, **environment)

    assert done.returncode == code
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_broken_environment_that_it_did_not_make_is_left_alone(clone: Path) -> None:
    (clone / ".venv").mkdir()
    (clone / ".venv/mine").touch()

    done = setup(clone)

    assert done.returncode == 3
    assert "move it away" in done.stderr
    assert (clone / ".venv/mine").exists()


def test_a_second_call_only_runs_the_command(clone: Path) -> None:
    made_by_setup(clone)

    done = setup(clone, "sh", "-c", 'echo "$1" "$VIRTUAL_ENV"; command -v python; exit 7', "-", "two  words")

    assert done.returncode == 7
    assert done.stdout == f"two  words {clone}/.venv\n{clone}/.venv/bin/python\n"
    assert done.stderr == ""


def test_a_change_of_what_is_needed_is_noticed(clone: Path) -> None:
    made_by_setup(clone)
    with (clone / "pyproject.toml").open("a") as file:
        file.write("# another dependency\n")

    assert "profkit and what it needs" in setup(clone).stderr


def test_all_that_the_tests_need_is_locked_with_hashes_and_without_a_place() -> None:
    locked = (ROOT / "setup" / "locked.txt").read_text()
    parts = re.split(r"^(?=[a-z])", locked, flags=re.MULTILINE)[1:]
    names = {re.split("[=; ]", part)[0] for part in parts}
    project = re.sub(r"#.*", "", (ROOT / "pyproject.toml").read_text())
    lists = re.findall(r"^(?:dependencies|dev) = \[\n(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    wanted = {name.lower() for part in lists for name in re.findall(r'"([\w-]+)', part)}
    assert len(lists) == 2
    assert wanted <= names
    assert not names & {"torch", "triton"}  # their build is chosen, and what is there stays
    assert all("--hash=sha256:" in part and "==" in part for part in parts)
    assert not re.search(r"https?://|file:|--(?:index|find)|@ ", "".join(parts))


@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck_has_nothing_to_say(script: str) -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run(["shellcheck", "-x", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
