"""The changed line in the function that takes more; nothing where no function that changed does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from profkit.core.types import Hotspot, Profile, RunDocument
from profkit.regression.paired.blame import ChangedLines, blamed_lines, changed_lines
from profkit.regression.paired.checkout import Version
from profkit.regression.paired.why import ROUNDS, CallChange, Reason
from tests.documents import document
from tests.git_repository import git, repository
from tests.spoken import spoken

CODE = "def quick():\n    return 1\n\n\ndef parse(text):\n    words = text.split()\n    return words\n"
SLOWER = CODE.replace("    return words", "    words = sorted(words)\n    return words").replace(
    "return 1", "return 2"
)


def profiled(root: Path, **seconds: float) -> RunDocument:
    """A run whose cProfile has these functions of `tool.py`, with what they call."""
    hotspots = tuple(
        Hotspot(name, value / 2, value, 10, str(root / "tool.py"), 5) for name, value in seconds.items()
    )
    profile = Profile("own time by function", "s", 1.0, hotspots, "own-time")
    return replace(document(), profiles=(profile,))


def reason(before: RunDocument, after: RunDocument) -> Reason:
    """What three runs of each version found that were alike."""
    return Reason(profiled=((before,) * ROUNDS, (after,) * ROUNDS))


def versions(tmp_path: Path) -> tuple[Version, Version]:
    """The code before and after, each in a folder of its own, as commits of one repository."""
    place = repository(tmp_path / "repo")
    (place / "tool.py").write_text(CODE)
    git(place, "add", "-A")
    git(place, "commit", "-qm", "Begin")
    first = git(place, "rev-parse", "HEAD")
    git(place, "worktree", "add", "-q", "--detach", str(tmp_path / "old"), first)
    (place / "tool.py").write_text(SLOWER)
    git(place, "commit", "-qam", "Sort the words")
    second = git(place, "rev-parse", "HEAD")
    return (
        Version("old", ("x",), tmp_path / "old", root=tmp_path / "old", commit=first),
        Version("new", ("x",), place, root=place, commit=second),
    )


def test_the_changed_line_of_the_function_that_rose_is_blamed_with_its_commit(tmp_path: Path) -> None:
    old, new = versions(tmp_path)
    assert old.root is not None
    assert new.root is not None
    documents = profiled(old.root, quick=0.1, parse=0.2), profiled(new.root, quick=0.1, parse=0.5)
    (line,) = blamed_lines(reason(*documents), old, new)
    assert (line.path, line.line, line.text) == ("tool.py", 7, "words = sorted(words)")
    assert (line.function, line.subject, line.commit) == ("parse", "Sort the words", new.commit)
    assert "100 ms to 250 ms" in spoken(line)


def test_hunks_are_read_and_what_files_hold_is_taken_for_no_header() -> None:
    diff = (
        "+++ b/a b.py\n@@ -1,0 +2,2 @@ def f():\n+++ b/../../etc/passwd\n+@@ -1 +9,9 @@\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-x\n"
        "@@ nonsense @@\n+++ b/c.c\n@@ -5,2 +4,0 @@ g(int)\n-a\n-b\n@@ -7 +6 @@\n-c\n+d\n@@ -99999999999 +1 @@\n"
    )
    assert list(changed_lines(diff)) == [
        ChangedLines("a b.py", 2, 3),
        ChangedLines("c.c", 6, 6),
    ]


def test_calls_that_were_counted_blame_the_line_of_their_caller_before_any_seconds(tmp_path: Path) -> None:
    old, new = versions(tmp_path)
    calls = (
        CallChange(("built-in", "<built-in method builtins.sorted>"), 0, 1200, 0.02, ("tool.py", "parse"), 5),
    )
    (line,) = blamed_lines(Reason(calls=calls), old, new)
    assert (line.line, line.function) == (7, "parse")
    assert spoken(line) == "sorted is called 1,200 times per run instead of 0"
