"""`profkit doctor --bundle`: what is packed, and what is not."""

from __future__ import annotations

import json
import platform
import tarfile
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import Silent, UsageError
from profkit.fronts import bundle
from profkit.fronts.child import profkit_argv

SECRET = "echo cannot open /home/anna/projects/x >&2; exit 3"


@pytest.fixture
def _short_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real profile, as short as there is one; a tool that fails and says where."""

    def short(*words: str) -> list[str]:
        if words[0] == "profile":
            return profkit_argv("profile", "--passes", "timing", "--sampling", "0.2", *words[1:])
        return ["sh", "-c", SECRET]

    monkeypatch.setattr(bundle, "diagnose", lambda backend, progress: ())
    monkeypatch.setattr(bundle, "profkit_argv", short)


@pytest.mark.thorough
@pytest.mark.usefixtures("_short_chain")
def test_the_whole_chain_is_packed_as_it_is_listed_and_nothing_private(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    target = tmp_path / "b.tar.gz"
    made = bundle.collect("cpu", tmp_path / "work", Silent())
    assert not made.interrupted
    assert [step.ending for step in made.steps] == ["done", *["exited with 3"] * (len(made.steps) - 1)]
    assert len(made.steps) > 2  # a tool that is not here is a step, too
    assert "cannot open" in made.steps[1].said
    bundle.pack(made, target)
    with tarfile.open(target) as archive:
        members = {one.name.removeprefix("profkit-bundle/"): one for one in archive.getmembers()}
        texts = {name: archive.extractfile(one).read().decode() for name, one in members.items()}  # type: ignore[union-attr]
    assert {name: len(text.encode()) for name, text in texts.items()} == dict(made.files)
    assert {"doctor.json", "steps.json", "cpu/run.json", "cpu/report.html"} <= texts.keys()
    assert {(one.uid, one.uname) for one in members.values()} == {(0, "")}
    for name, text in texts.items():
        assert not name.endswith(".json") or json.loads(text)
        assert "anna" not in text
        assert str(tmp_path) not in text
        assert len(platform.node()) < 6 or platform.node() not in text
    with pytest.raises(UsageError, match="there already"):
        bundle.check_target(target)


@pytest.mark.usefixtures("_short_chain")
def test_a_ctrl_c_packs_what_was_done_by_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = bundle.process.run, []

    def interrupted(*words: Any, **options: Any) -> Any:
        calls.append(words)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return run(*words, **options)

    monkeypatch.setattr(bundle.process, "run", interrupted)
    made = bundle.collect("cpu", tmp_path, Silent())
    assert made.interrupted
    assert [step.ending for step in made.steps] == ["done", "interrupted"]
    assert {"doctor.json", "steps.json", "cpu/run.json"} <= dict(made.files).keys()
