"""A wheel in an empty environment: what it brings, how much that is, and that it profiles."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import profkit
from tests.conftest import ROOT
from tests.wheel import build_wheel, installs

# What each extra is there for; `dev` and `docs` are for this repository.
EXTRAS = {
    "torch": ("torch",),
    "triton": ("torch", "triton"),
    "cuda": ("nvtx",),
    "attach": (),  # a program
    "mcp": ("mcp",),
    "modal": ("modal",),
    "notebook": ("IPython",),
    "llm": ("openai", "anthropic"),
}
MAX_MIB = 150  # of the base install: 26 pip and setuptools, 73 numpy
PROGRAM = "total = 0\nfor i in range(20_000_000):\n    total += i * i % 7\n"


SETTINGS = (ROOT / "pyproject.toml").read_text()
PRESENT = re.findall(
    r"^(\w+) = \[", SETTINGS.partition("[project.optional-dependencies]")[2].partition("\n[")[0], re.MULTILINE
)


def test_each_extra_is_tried_and_the_version_stands_once() -> None:
    assert {*PRESENT} - {"dev", "docs"} == {*EXTRAS}
    assert 'dynamic = ["version"]' in SETTINGS
    headings = re.findall(r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    # A version stands there with its date from the commit on that is released, as the release workflow asks.
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading) for heading in headings[1:])
    assert len(headings) > 1 or profkit.__version__ == "0.1.0"
    assert (ROOT / "profkit" / "py.typed").is_file()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def install(wheel: Path, folder: Path, extra: str = "") -> Path:
    """The `bin` of a new environment with the wheel in it."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "python", "-m", "pip"]
    subprocess.run([*pip, "install", "-q", f"{wheel}[{extra}]" if extra else wheel], check=True)
    subprocess.run([*pip, "check"], check=True)
    return folder / "bin"


APACHE_2 = (
    "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"  # of the text that apache.org has
)


def test_the_licence_is_the_text_of_apache_2_and_named() -> None:
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2
    assert 'license = "Apache-2.0"\nlicense-files = ["LICENSE", "NOTICE", ' in SETTINGS
    assert "[LICENSE](LICENSE)" in (ROOT / "README.md").read_text()


def test_the_notice_names_what_comes_from_other_projects() -> None:
    notice = (ROOT / "NOTICE").read_text()
    texts = [path for path in (ROOT / "profkit").rglob("*") if re.match("LICEN[CS]E|COPYING", path.name)]
    assert texts
    for path in texts:
        assert path.name in notice
        assert path.relative_to(ROOT).as_posix() in SETTINGS


@installs
def test_the_wheel_has_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (name,) = (name for name in names if name.endswith(".dist-info/licenses/LICENSE"))
        assert hashlib.sha256(archive.read(name)).hexdigest() == APACHE_2
        for text in ("NOTICE", "LICENSE.tritonbench"):
            assert any(name.partition("/licenses/")[2].endswith(text) for name in names), text
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        said = archive.read(metadata).splitlines()
        assert {b"License-Expression: Apache-2.0", b"License-File: LICENSE"} <= {*said}


@installs
def test_the_base_install_is_light_and_profiles_a_program(wheel: Path, tmp_path: Path) -> None:
    begun = time.perf_counter()
    bin = install(wheel, tmp_path / "base")
    mib = sum(path.lstat().st_size for path in (tmp_path / "base").rglob("*")) / 2**20
    print(f"with pip: {time.perf_counter() - begun:.0f} s, {mib:.0f} MiB")
    assert mib < MAX_MIB
    (tmp_path / "yours.py").write_text(PROGRAM)
    env = {"PATH": f"{bin}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [bin / "profkit", "profile", "--passes", "timing,stacks", "--", "python", "yours.py"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "at yours.py:3" in done.stdout
    code = "import profkit, sys; profkit.profile; profkit.load; print({'numpy', 'torch', 'IPython'} & {*sys.modules})"
    said = subprocess.run([bin / "python", "-c", code], env=env, capture_output=True, text=True, check=True)
    assert said.stdout == "set()\n"


@installs
@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_installs_and_what_it_brings_is_imported(extra: str, wheel: Path, tmp_path: Path) -> None:
    bin = install(wheel, tmp_path, extra)
    code = "; ".join(f"import {name}" for name in ("profkit", *EXTRAS[extra]))
    subprocess.run([bin / "python", "-c", code], check=True)
    if extra == "notebook":
        done = subprocess.run(
            [bin / "ipython", "--no-banner", "-c", "%load_ext profkit\n%profkit sum(range(30_000_000))"],
            capture_output=True,
            text=True,
        )
        assert "What to do" in done.stdout, done.stdout + done.stderr
