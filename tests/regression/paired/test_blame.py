"""The changed line in the function that takes more; nothing where no function that changed does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from profkit.core.types import RUN, Hotspot, Profile, Reading, RunDocument, Source
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
    assert "100 ms to 250 ms" in spoken(line)


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
        ChangedLines("c.c", 4, 4, "g(int)", ("a", "b")),
    ]


def test_calls_that_were_counted_blame_the_line_of_their_caller_before_any_seconds(tmp_path: Path) -> None:
    old, new = versions(tmp_path)
    calls = (
        CallChange(("built-in", "<built-in method builtins.sorted>"), 0, 1200, 0.02, ("tool.py", "parse"), 5),
    )
    (line,) = blamed_lines(Reason(calls=calls), old, new)
    assert (line.line, line.function) == (7, "parse")
    assert spoken(line) == "sorted is called 1,200 times per run instead of 0"


def committed(place: Path, message: str) -> str:
    git(place, "add", "-A")
    git(place, "commit", "-qm", message)
    return git(place, "rev-parse", "HEAD")


def counted_functions(**values: tuple[float, float]) -> RunDocument:
    """A run of which all instructions were counted; of each function its own, and with what it calls."""
    spots = tuple(Hotspot(name, own, total, file="tool.c") for name, (own, total) in values.items())
    whole = sum(own for own, _ in values.values())
    profile = Profile("functions by instructions", "instructions", whole, spots, "counted-functions")
    return replace(document(), profiles=(profile,), readings=(INSTRUCTIONS,))


C_CODE = (
    "int leaf(int n)\n{\n    int s = 0;\n    for (int i = 0; i < n; i++)\n        s += i;\n    return s;\n}\n\n"
    "int main(void)\n{\n    return leaf(9);\n}\n"
)


def blamed_in_c(tmp_path: Path, *steps: str) -> list[tuple[int, str, str]]:
    """Line, function and commit of what is blamed, where `leaf` takes six times as many instructions."""
    place = repository(tmp_path / "repo")
    (place / "tool.c").write_text(C_CODE)
    first = committed(place, "Begin")
    for number, code in enumerate(steps):
        (place / "tool.c").write_text(code)
        last = committed(place, f"Step {number}")
    documents = (
        counted_functions(leaf=(1e5, 1e5), main=(10.0, 1.0001e5)),
        counted_functions(leaf=(6e5, 6e5), main=(10.0, 6.0001e5)),
    )
    old = Version("old", ("x",), place, root=place, commit=first)
    new = Version("new", ("x",), place, root=place, commit=last)
    return [(line.line, line.function, line.subject) for line in blamed_lines(Reason(documents), old, new)]


def test_a_changed_caller_is_not_blamed_for_what_a_changed_function_below_it_takes(tmp_path: Path) -> None:
    slower = C_CODE.replace("s += i;", "s += i / 3;")
    assert blamed_in_c(tmp_path, slower, slower.replace("leaf(9)", "leaf(9) + 0")) == [(5, "leaf", "Step 0")]
    alone = C_CODE.replace("leaf(9)", "leaf(54)")  # nothing in it changed: its caller asks for more
    assert blamed_in_c(tmp_path / "alone", alone) == [(11, "main", "Step 0")]


def test_comments_and_lines_behind_a_function_are_blamed_for_nothing(tmp_path: Path) -> None:
    commented = C_CODE.replace("    int s = 0;", "    /* the sum */\n    int s = 0;") + "\n// the end\n"
    slower = commented.replace("s += i;", "s += i / 3;")
    assert blamed_in_c(tmp_path, commented, slower) == [(6, "leaf", "Step 1")]
    assert blamed_in_c(tmp_path / "other", C_CODE + "\nint unused = 1;\n") == []


def test_a_line_that_was_taken_out_is_shown_with_the_commit_that_did_it(tmp_path: Path) -> None:
    place = repository(tmp_path / "repo")
    kept = (
        "CACHE = {}\n\n\ndef parse(text):\n    words = CACHE.get(text) or sorted(text)\n"
        "    CACHE[text] = words\n    return words\n"
    )
    (place / "tool.py").write_text(kept)
    first = committed(place, "Begin")
    (place / "tool.py").write_text(kept.replace("    CACHE[text] = words\n", ""))
    taken = committed(place, "Keep nothing")
    (place / "tool.py").write_text(kept.replace("    CACHE[text] = words\n", "") + "\n# later\n")
    last = committed(place, "Later")
    old = Version("old", ("x",), place, root=place, commit=first)
    new = Version("new", ("x",), place, root=place, commit=last)
    calls = (CallChange(("", "sorted"), 1, 100, 0.9, ("tool.py", "parse"), 4),)
    (line,) = blamed_lines(Reason(calls=calls), old, new)
    assert (line.line, line.text, line.removed) == (5, "CACHE[text] = words", True)
    assert (line.commit, line.subject) == (taken, "Keep nothing")
