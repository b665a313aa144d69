"""The changed line in the function that takes more; nothing where no function that changed does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from profkit.core.types import RUN, Frame, Hotspot, Profile, Reading, RunDocument, Source
from profkit.regression.paired.blame import ChangedLines, blamed_lines, changed_lines
from profkit.regression.paired.call_counts import CallChange
from profkit.regression.paired.version import Version
from profkit.regression.paired.why import ROUNDS, Reason
from tests.documents import document
from tests.git_repository import git, repository

CODE = "def quick():\n    return 1\n\n\ndef parse(text):\n    words = text.split()\n    return words\n"
SLOWER = CODE.replace("    return words", "    words = sorted(words)\n    return words").replace(
    "return 1", "return 2"
)


INSTRUCTIONS = Reading("instructions", 1e6, "1", "simulated", RUN, Source("valgrind"))


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
    assert "200 ms to 500 ms" in line.reason


def test_a_function_that_calls_all_others_is_blamed_for_what_was_added_to_itself(tmp_path: Path) -> None:
    """All that is below it hides what it has more: 5 % of its whole, but 40 times what it did itself."""
    old, new = versions(tmp_path)

    def dispatching(root: Path | None, sorting: float) -> RunDocument:
        file = str((root or tmp_path) / "tool.py")
        own = Hotspot("parse", 0.001, 0.95 + sorting, 10, file, 5)
        edges = (
            Hotspot("parse", 0.9, 0.9, 10, file, 5, callee=Frame("handler", None, file, 20)),
            Hotspot("parse", sorting, sorting, 10, file, 5, callee=Frame("sorted", "built-in")),
        )
        profiles = (
            Profile("own time by function", "s", 1.0, (own,), "own-time"),
            Profile("own functions and what they call", "s", 1.0, edges, "program-calls"),
        )
        return replace(document(), profiles=profiles)

    (line,) = blamed_lines(reason(dispatching(old.root, 0.0), dispatching(new.root, 0.04)), old, new)
    assert (line.line, line.function) == (7, "parse")
    assert "libraries that it calls: 1.00 ms to 41.0 ms" in line.reason
    assert blamed_lines(reason(dispatching(old.root, 0.04), dispatching(new.root, 0.04)), old, new) == ()


def test_nothing_is_blamed_where_no_changed_function_takes_more(tmp_path: Path) -> None:
    old, new = versions(tmp_path)
    assert old.root is not None
    assert new.root is not None
    documents = profiled(old.root, parse=0.2, other=0.1), profiled(new.root, parse=0.2, other=0.7)
    assert blamed_lines(reason(*documents), old, new) == ()
    assert blamed_lines(Reason(), old, new) == ()


def test_a_line_that_is_in_no_commit_has_none(tmp_path: Path) -> None:
    old, new = versions(tmp_path)
    assert old.root is not None
    assert new.root is not None
    (new.root / "tool.py").write_text(SLOWER.replace("sorted(words)", "sorted(words, key=len)"))
    documents = profiled(old.root, parse=0.2), profiled(new.root, parse=0.5)
    (line,) = blamed_lines(reason(*documents), old, replace(new, dirty=True))
    assert (line.commit, line.subject) == ("", "not committed")


def test_a_function_of_machine_code_is_known_by_the_name_that_git_sees(tmp_path: Path) -> None:
    place = repository(tmp_path / "repo")
    code = (
        "int main(void)\n{\n    return 0;\n}\n\nstatic long sum_all(const long *v, int n)\n{\n    long s = 0;\n"
        "    for (int i = 0; i < n; i++)\n        s += v[i];\n    return s;\n}\n"
    )
    (place / "tool.c").write_text(code)
    git(place, "add", "-A")
    git(place, "commit", "-qm", "Begin")
    first = git(place, "rev-parse", "HEAD")
    (place / "tool.c").write_text(code.replace("s += v[i];", "s += v[i] / 3;"))
    git(place, "commit", "-qam", "Divide")
    counted = [
        replace(
            document(),
            profiles=(Profile("functions by instructions", "instructions", 1e6, (Hotspot("sum_all", own),)),),
            readings=(INSTRUCTIONS,),
        )
        for own in (2e5, 6e5)
    ]
    old = Version("old", ("x",), place, root=place, commit=first)
    new = Version("new", ("x",), place, root=place, commit=git(place, "rev-parse", "HEAD"))
    (line,) = blamed_lines(Reason((counted[0], counted[1])), old, new)
    whole = [
        replace(one, profiles=(replace(one.profiles[0], total=one.profiles[0].hotspots[0].own),))
        for one in counted
    ]
    assert blamed_lines(Reason((whole[0], whole[1])), old, new)  # it is all of the program in both
    assert (line.path, line.line, line.function) == ("tool.c", 10, "sum_all")


def test_hunks_are_read_and_what_files_hold_is_taken_for_no_header() -> None:
    diff = (
        "+++ b/a b.py\n@@ -1,0 +2,2 @@ def f():\n+++ b/../../etc/passwd\n+@@ -1 +9,9 @@\n+++ /dev/null\n"
        "@@ -1 +0,0 @@\n-x\n"
        "@@ nonsense @@\n+++ b/c.c\n@@ -5,2 +4,0 @@ g(int)\n-a\n-b\n@@ -99999999999 +1 @@\n"
    )
    assert list(changed_lines(diff)) == [
        ChangedLines("a b.py", 2, 3, "def f():"),
        ChangedLines("c.c", 4, 4, "g(int)"),
    ]


def test_calls_that_were_counted_blame_the_line_of_their_caller_before_any_seconds(tmp_path: Path) -> None:
    old, new = versions(tmp_path)
    calls = (
        CallChange(("built-in", "<built-in method builtins.sorted>"), 0, 1200, 0.02, ("tool.py", "parse"), 5),
    )
    (line,) = blamed_lines(Reason(calls=calls), old, new)
    assert (line.line, line.function) == (7, "parse")
    assert line.reason == "sorted is called 1,200 times per run instead of 0"


def test_seconds_that_overlap_between_the_runs_of_both_versions_blame_nothing(tmp_path: Path) -> None:
    old, new = versions(tmp_path)
    assert old.root is not None
    assert new.root is not None
    slow, quick = profiled(old.root, parse=0.5), profiled(old.root, parse=0.2)
    after = profiled(new.root, parse=0.5)
    assert blamed_lines(Reason(profiled=((quick, slow, quick), (after,) * 3)), old, new) == ()
    assert blamed_lines(Reason(profiled=((quick,), (after,))), old, new) == ()
    assert blamed_lines(Reason(profiled=((quick,) * 3, (after,) * 3)), old, new) != ()


def test_a_generator_that_a_built_in_function_runs_is_blamed_by_the_line_it_begins_in(tmp_path: Path) -> None:
    old, new = versions(tmp_path)
    there, elsewhere = (CallChange(("tool.py", "<genexpr>"), 10, 30, 0.5, None, line) for line in (7, 1))
    (line,) = blamed_lines(Reason(calls=(there,)), old, new)
    assert (line.line, line.function) == (7, "parse")
    assert blamed_lines(Reason(calls=(elsewhere,)), old, new) == ()
