"""Each sentence that SECURITY.md promises has its tests; a new sentence, or a test that is gone, is noticed here."""

from __future__ import annotations

import ast
import json
import os
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profkit.core.run_folder import write_run
from profkit.fronts.child import profkit_argv
from tests.conftest import ROOT
from tests.documents import document

HERE = "tests/test_security_promises.py"
SECTIONS = ("What is trusted", "What is not trusted", "What is promised", "What is installed")
# By the first words of a sentence, the tests of what it says; none where it promises nothing.
PROMISES: dict[str, tuple[str, ...]] = {
    "**The workload.** `profile`, `record`": (),
    "It runs with your rights.": (),
    "`evaluate` keeps the kernels in processes of their own": (
        "tests/execution/test_worker_pool.py::test_the_jobs_of_a_group_have_one_worker_and_who_ends_it_costs_no_other",
        "tests/kernels/evaluation/test_cheats.py::test_a_cheat_does_not_pass",
        "tests/evaluation/test_guides_functions.py::test_a_crash_costs_its_tests_and_they_stay_in_the_score",
    ),
    "**The tools**": (),
    "**The configuration that you run.**": (),
    "**Reports, run folders": (
        f"{HERE}::test_to_read_a_report_runs_none_of_its_code",
        "tests/cli/test_hostile_files.py::test_a_command_refuses_it_at_once",
    ),
    "**Configuration of others": (
        f"{HERE}::test_targets_of_others_are_only_read",
        "tests/regression/nightly/test_plan.py::test_the_plan_of_a_night_says_what_would_run_and_starts_nothing_of_the_file",
    ),
    "**Folders that others can write to**": (
        "tests/core/test_safe_folder.py::test_nothing_is_written_into_what_took_a_runs_place",
        "tests/core/test_safe_folder.py::test_a_link_in_place_of_a_folder_inside_of_a_run_is_not_followed",
    ),
    "To read, judge, show, compare, store or scrub": (
        f"{HERE}::test_to_read_a_report_runs_none_of_its_code",
        f"{HERE}::test_a_plan_imports_nothing",
        "tests/core/test_files.py::test_what_would_run_is_named",
        "tests/profilers/nsys/test_nsys_schemas.py::test_a_view_in_the_place_of_a_table_is_not_run",
        "tests/regression/history/test_damage.py::test_a_view_in_place_of_a_table_is_refused",
        "tests/reporting/html/test_page_safety.py::test_names_that_are_markup_are_shown_and_run_nothing",
        "tests/reporting/html/test_page_safety.py::test_even_markup_that_slipped_through_could_run_nothing",
    ),
    "A file is opened once": (
        "tests/core/test_files.py::test_every_file_comes_in_through_the_one_door",
        "tests/core/test_files.py::test_what_was_opened_counts_and_not_what_the_name_was",
        "tests/core/test_files.py::test_a_pipe_a_device_and_a_folder_are_refused_at_once",
        "tests/core/test_files.py::test_no_more_than_the_bound_is_read_however_large_the_file_is",
    ),
    "What cannot be read is refused": (
        f"{HERE}::test_what_cannot_be_read_is_refused_in_time_and_memory",
        "tests/fuzz/test_corpus.py::test_what_fails_computes_too_long_or_waits_is_found",
    ),
    "Nothing is written but where you said": (
        f"{HERE}::test_nothing_is_written_but_where_it_was_said",
        "tests/core/test_safe_folder.py::test_a_link_with_the_name_of_a_temporary_file_is_not_followed",
        "tests/core/test_safe_folder.py::test_the_log_of_a_process_goes_through_no_link",
    ),
    "Where another user can take the name of a run's folder": (
        "tests/core/test_safe_folder.py::test_a_run_where_a_stranger_may_take_its_name_goes_on_by_a_handle",
        "tests/core/test_safe_folder.py::test_a_second_user_who_swaps_the_folder_again_and_again_gets_nothing",
    ),
    "A tool that turns this path into the folder's name": (),
    "`record` writes elsewhere first": (
        "tests/core/test_safe_folder.py::test_whoever_takes_a_name_at_any_step_of_a_run_gets_nothing",
        "tests/core/test_safe_folder.py::test_no_report_is_recorded_through_a_link_to_nothing",
    ),
    "What comes back from another machine": (
        "tests/places/test_what_comes_back.py::test_nothing_that_a_place_plants_is_kept_and_one_line_names_it",
        "tests/places/test_what_comes_back.py::test_what_is_left_at_a_place_is_regular_and_not_executable",
        "tests/places/test_what_comes_back.py::test_too_much_is_refused",
    ),
    "What Instruments keeps as a folder": (
        "tests/places/test_what_comes_back.py::test_a_document_of_instruments_comes_as_one_archive_and_its_exports_by_name",
    ),
    "Pages are made anew": (
        "tests/reporting/html/test_page_safety.py::test_a_link_to_a_file_stays_beside_the_page",
        "tests/places/test_what_comes_back.py::test_a_backend_that_there_is_not_is_refused_and_makes_no_folder",
    ),
    "`profkit scrub` takes out": (
        "tests/profiling/scrub/test_scrub_run.py::test_no_planted_secret_is_left_in_any_file",
        "tests/profiling/scrub/test_redact.py::test_a_secret_goes_in_whatever_form_it_is_written",
        "tests/profiling/scrub/test_scrub_run.py::test_what_cannot_be_scrubbed_is_left_out_and_named_with_the_way_round",
    ),
    "Whatever ends profkit, `kill -9` too": (
        "tests/core/test_watcher.py::test_a_killed_profile_leaves_nothing_of_its_program",
        "tests/core/test_watcher.py::test_a_killed_server_of_an_agent_leaves_nothing_of_what_it_profiles",
        "tests/core/test_watcher.py::test_a_killed_comparison_leaves_nothing_of_either_version",
        "tests/core/test_watcher.py::test_a_killed_evaluation_leaves_nothing_of_its_workers_and_kernels",
        "tests/test_deadlines.py::test_no_process_is_started_or_waited_for_without_an_end",
        "tests/profiling/test_time_limits.py::test_a_pass_that_never_ends_is_killed_and_the_page_says_what_would_give_it_more",
    ),
    "A run's folder is readable by its owner alone, and so is each document": (
        "tests/runtime/passes/test_shown_command.py::test_a_run_keeps_its_command_for_its_owner_and_shows_what_is_harmless",
    ),
    "What shows a command to others": (
        "tests/runtime/passes/test_shown_command.py::test_a_run_keeps_its_command_for_its_owner_and_shows_what_is_harmless",
        "tests/runtime/passes/test_shown_command.py::test_harmless_commands_stay_readable",
        "tests/reporting/test_json_for_others.py::test_a_run_is_printed_with_what_is_harmless_of_its_command_also_in_the_lines_of_tools",
        "tests/reporting/test_json_for_others.py::test_a_night_and_a_bisection_tell_what_is_harmless_of_their_commands",
        "tests/cli/test_planted_secrets.py::test_no_token_of_a_program_is_in_anything_that_leaves_the_machine",
    ),
    "A line to type never has a word of a command": (
        "tests/cli/test_foreign_commands.py::test_no_line_to_type_has_anything_of_the_command_of_somebody_elses_run",
        "tests/cli/test_foreign_commands.py::test_a_night_of_such_a_workload_says_no_line_with_it",
    ),
    "Nothing is sent anywhere": (
        f"{HERE}::test_nothing_is_sent_anywhere",
        "tests/reporting/html/test_page_safety.py::test_a_page_names_no_address_but_that_of_svg",
        "tests/docs/test_site.py::test_a_browser_asks_nobody_else_and_the_search_finds",
    ),
    "How it is held": (
        "tests/fuzz/test_corpus.py::test_every_seed_is_read_and_an_input_that_once_failed_is_read_or_refused",
        f"{HERE}::test_every_reader_is_tried_each_week",
    ),
    "An input that takes more than that fails.": (
        "tests/fuzz/test_corpus.py::test_what_fails_computes_too_long_or_waits_is_found",
    ),
    "`./setup.sh --dev` installs": (
        "tests/shell/test_setup.py::test_all_that_the_tests_need_is_locked_with_hashes_and_without_a_place",
    ),
    "torch, Triton, the build of this package": (),
    "The recipes in `ci/` name actions by their commit.": (
        f"{HERE}::test_recipes_name_actions_by_their_commit",
    ),
}  # fmt: skip


def sentences(text: str) -> list[str]:
    """Those of the sections, each in one line."""
    found = []
    for title in SECTIONS:
        section = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
        for block in re.split(r"\n\n|^- ", section, flags=re.MULTILINE):
            found += re.split(r"(?<=\.) (?=[A-Z*`]|torch)", " ".join(block.split()))
    return [sentence for sentence in found if sentence]


def test_each_sentence_has_its_tests_and_each_test_is_there() -> None:
    said = sentences((ROOT / "SECURITY.md").read_text())
    without = [one for one in said if not any(one.startswith(known) for known in PROMISES)]
    assert not without, "a sentence of SECURITY.md is in no row of PROMISES"
    gone = [known for known in PROMISES if not any(one.startswith(known) for one in said)]
    assert not gone, "SECURITY.md does not say this any more"
    for name in {name for names in PROMISES.values() for name in names}:
        file, _, test = name.partition("::")
        tree = ast.parse((ROOT / file).read_text())
        assert test in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, name


def profkit(*words: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """As the installed command: `python -m` would look for modules in `cwd` first."""
    environment = {**os.environ, "NO_COLOR": "1", **(env or {})}
    return subprocess.run(
        profkit_argv(*words),
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "artifacts").mkdir(parents=True)
    write_run(folder, document())
    return folder


class Evil:
    """What a pickle runs when it is loaded."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.system, ("touch /tmp/profkit-promise-evil-ran; touch ran",))


@pytest.mark.thorough
@pytest.mark.parametrize("verb", ["summarize", "check", "report", "compare", "history", "scrub"])
def test_to_read_a_report_runs_none_of_its_code(run: Path, verb: str, tmp_path: Path) -> None:
    """Modules that Python would import, a pickle, and a document that names commands, beside where it is read."""
    code = f"import pathlib; pathlib.Path({str(tmp_path / 'ran')!r}).touch()\n"
    work = tmp_path / "work"
    work.mkdir()
    for name in ("json.py", "random.py", "yaml.py", "sitecustomize.py", "usercustomize.py", "conftest.py"):
        for folder in (work, run, run / "artifacts"):
            (folder / name).write_text(code)
    (run / "artifacts" / "profile.pkl").write_bytes(pickle.dumps(Evil()))
    data = json.loads((run / "run.json").read_text())
    data["workload"]["command"] = ["touch", str(tmp_path / "ran")]
    (run / "run.json").write_text(json.dumps(data))
    words = {
        "compare": ("compare", str(run), str(run)),
        "history": ("history", "add", "--history", str(tmp_path / "h.sqlite"), str(run)),
        "scrub": ("scrub", str(run), "--output", str(tmp_path / "copy")),
        "report": ("report", str(run), "--format", "html"),
    }.get(verb, (verb, str(run)))
    said = profkit(*words, cwd=work)
    assert said.returncode in (0, 1, 5), said.stderr
    assert not (tmp_path / "ran").exists()
    assert not (work / "ran").exists()


@pytest.mark.thorough
def test_a_plan_imports_nothing(tmp_path: Path) -> None:
    for name in ("app.py", "json.py", "sitecustomize.py", "package/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    for command in (("app.py",), ("-m", "package")):
        said = profkit("profile", "--plan", "--", sys.executable, *command, cwd=tmp_path)
        assert said.returncode == 0, said.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "!!python/object/apply:os.system ['touch ran']\n",
        "targets: {ipc: !!python/name:os.system }\n",
        "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
            f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(12)
        ),
        "a: &a [*a]\n",
        "targets: " + "[" * 20000 + "\n",
        "targets: {<<: {<<: {ipc: '< 5 %'}}}\n",
        "? {a: b}\n: c\n",
        "%YAML 99.9\n---\n- x\n",
        "targets: {ipc: '< 1e999'}\n",
        "targets: {ipc: '< .nan'}\n",
        "\0\n",
    ],
)  # fmt: skip
def test_targets_of_others_are_only_read(run: Path, text: str, tmp_path: Path) -> None:
    (tmp_path / "targets.yaml").write_text(text)
    begin = time.monotonic()
    said = profkit("check", str(run), "--targets", "targets.yaml", cwd=tmp_path)
    assert said.returncode == 2, (said.returncode, said.stdout, said.stderr)
    assert said.stderr.startswith("error: ")
    assert "Traceback" not in said.stderr
    assert time.monotonic() - begin < 15
    assert not (tmp_path / "ran").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["zeros", "braces", "quotes", "one line", "nested"])
def test_what_cannot_be_read_is_refused_in_time_and_memory(kind: str, tmp_path: Path) -> None:
    size = 8 << 20
    content = {
        "zeros": b"\0" * size, "braces": b"{" * size, "quotes": b'{"schema": "profkit.run/6", "x": "' + b"a" * size,
        "one line": b"a" * size, "nested": b'{"schema":"profkit.run/6","a":' + b"[" * size,
    }[kind]  # fmt: skip
    (tmp_path / "file.json").write_bytes(content)
    used = []
    for name in ("none.json", "file.json"):
        begin = time.monotonic()
        measured = (
            f"import sys, resource; from profkit.cli import main; sys.argv = ['profkit', 'summarize', '{name}']\n"
            "try: main()\n"
            "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", measured],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("error: ")
        assert time.monotonic() - begin < 10 * 8
        used.append(int(done.stdout.split()[-1]) * (1 if sys.platform == "darwin" else 1024))
    assert used[1] - used[0] < 4 * size


@pytest.mark.thorough
def test_nothing_is_written_but_where_it_was_said(run: Path, tmp_path: Path) -> None:
    """The home, the temporary folder and the folder that it is called in stay as they are."""
    places = {name: tmp_path / name for name in ("home", "work", "temporary")}
    for place in places.values():
        place.mkdir()
    env = {
        "HOME": str(places["home"]), "TMPDIR": str(places["temporary"]), "XDG_CACHE_HOME": str(places["home"] / "c"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    (tmp_path / "app.py").write_text("print(sum(range(10)))\n")
    for words in (
        ("summarize", str(run)),
        ("check", str(run)),
        ("compare", str(run), str(run)),
        ("report", str(run), "--format", "html", "--output", str(tmp_path / "page.html")),
        ("scrub", str(run), "--output", str(tmp_path / "copy")),
        ("history", "add", "--history", str(tmp_path / "h.sqlite"), str(run)),
        ("profile", "--plan", "--", sys.executable, str(tmp_path / "app.py")),
        (
            "profile",
            "--depth",
            "quick",
            "--output",
            str(tmp_path / "out"),
            "--",
            sys.executable,
            str(tmp_path / "app.py"),
        ),
    ):
        said = profkit(*words, cwd=places["work"], env=env)
        assert said.returncode in (0, 1, 5), (words, said.stderr)
        left = [str(path) for place in places.values() for path in place.rglob("*")]
        assert left == [], words


@pytest.mark.thorough
def test_nothing_is_sent_anywhere(run: Path, tmp_path: Path) -> None:
    """No socket of the internet family is made by what reads, and by a plan and a profile of a program."""
    (tmp_path / "app.py").write_text("print(sum(range(10)))\n")
    (tmp_path / "block").mkdir()
    (tmp_path / "block" / "sitecustomize.py").write_text(
        "import sys\n"
        "def hook(event, args):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo', 'socket.sendto', 'urllib.Request'):\n"
        f"        open({str(tmp_path / 'sent')!r}, 'a').write(repr((event, args)))\n"
        "sys.addaudithook(hook)\n"
    )
    env = {"PYTHONPATH": f"{tmp_path / 'block'}{os.pathsep}{ROOT}"}
    for words in (
        ("summarize", str(run)),
        ("report", str(run), "--format", "html"),
        ("compare", str(run), str(run)),
        ("history", "add", "--history", "h.sqlite", str(run)),
        ("scrub", str(run), "--output", "copy"),
        ("profile", "--depth", "quick", "--", sys.executable, "app.py"),
    ):
        said = profkit(*words, cwd=tmp_path, env=env)
        assert said.returncode in (0, 1, 5), (words, said.stderr)
    assert not (tmp_path / "sent").exists(), (tmp_path / "sent").read_text()
    code = "import socket; socket.getaddrinfo('localhost', 1)"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **env}, check=False)
    assert (tmp_path / "sent").exists()  # what is sent is seen


def test_every_reader_is_tried_each_week() -> None:
    assert "tests.fuzz --inputs 100000" in (ROOT / "ci" / "fuzz.cron").read_text()


def test_recipes_name_actions_by_their_commit() -> None:
    used = [
        line.strip()
        for path in (*(ROOT / "ci").glob("*.yml"), *(ROOT / ".github").rglob("*.yml"))
        for line in path.read_text().splitlines()
        if "uses:" in line and "uses: ./" not in line
    ]
    assert used
    assert [line for line in used if not re.search(r"@[0-9a-f]{40}( |$)", line)] == []
