"""Every command on the pages is run as it stands, in a folder that has what it names, and ends as the pages say.

What cannot be run here is in `NOT_RUN` with its reason, and is held to be a shell line at least.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cuda_stand_in import nvidia as nvidia
from tests.docs.sandbox import Sandbox, furnish
from tests.docs.shown import PAGES, Block, blocks, fenced

# Why a command is not run by this test: by what it begins with, or holds.
NOT_RUN = {
    r"^# ": "changes the machine, as root",
    r"^sudo ": "changes who runs it, and asks for a password",
    r"^docker |^sbatch |^srun |^systemctl |^crontab |^gh |^modal ": "needs a service that is not here",
    r"^dcgmi |^dyno ": "talks to a service of machines with GPUs",
    r"^(?:\w+=\S+ )?\./setup\.sh": "sets up this project, by network; tests/shell runs it",
    r"^\./check\.sh": "runs these tests",
    r"^profkit sweep(?!.*--budget)": "takes minutes; tests/sweep has small ones",
    r"^profkit (?:evaluate|run)\b|one_test": "needs torch, which is hidden here; tests/kernels/evaluation runs it",
    r"^(?:\w+=\S.* )?profkit generate|generated_kernels/first|--backend llm": "asks a language model, "
    "or shows what one wrote; tests/generation has a server",
    r"^profkit compare --a ": "runs two programs for a minute; tests/regression/paired does",
    r"^profkit bisect ": "builds and runs commits for minutes; tests/regression/bisect has a repository",
    r"--on '?(?:PLACE|ssh|docker|kubectl|ray|srun|modal|prefix)\b": "needs another machine; tests/places has ssh",
    r"^pytest --profkit": "needs a suite; tests/fronts/test_pytest_plugin.py has one",
    r"--pid \d": "needs a program that runs; tests/profiling/test_attach.py has one",
    r"^profkit gate ": "writes into a repository; tests/fronts has one",
    r"^profkit mcp ": "goes on until its input ends; tests/fronts has a client",
    r"^python -m tests\.": "runs tests",
    r"--bundle ": "takes minutes; tests/fronts has a short one",
    r"--base ": "needs a repository with two versions; tests/regression/paired has one",
    r"^perf ": "needs a perf that may record; tests/profilers/perf reads what it writes",
    r"--tool perf ": "needs a perf that may record; tests/cli runs it where there is one",
    r"\[[A-Za-z-]|\.\.\.|\w\|\w|--tool TOOL": "shows what may be typed, and is not a command",
    r"^profkit nightly CONFIG.yaml$": "a form; nightly.md has it with a file",
    r"^profkit history (?:prune|trend --from FILE|export --to FILE)$": "a form; history.md has it with its arguments",
    r"--backend mps\b|--tool xctrace|(?:check\.xc|run\.)trace|^xc(?:trace|run) ": "needs a Mac; tests/backends has one",
    r"^pip |^git clone |^mkdocs serve": "needs a network, or goes on until it is stopped",
    r"^(?:sudo -E )?(?:\./analyze_multibackend\.sh|wrappers/)": "tests/shell runs the fronts",
}
# What a command ends with where that is not 0, and where the page says so.
ENDS: dict[str, int] = {
    "profkit check RUN": 1,
    "profkit check EVALUATION --targets kernels.yaml": 1,
    "profkit check exports": 1,
    "profkit check REPORT": 1,
    "profkit check trace.sqlite --strict": 5,
}
# Inside a sentence the name of a verb alone is no call.
VERB_ALONE = re.compile(
    r"profkit (?:profile|record|summarize|check|scrub|report|compare|nightly|history|evaluate)(?: --depth gate)?"
)
# These need nothing that was typed before them: shown on two pages, they are run once, whatever the workload is.
# Profiles take seconds, and are planned only: tests/cli and tests/profiling run some. The two variables change nothing
# here.
ALONE = re.compile(r"(?:env -u LD_PRELOAD |TMPDIR=\S+ )?(profkit (?:profile|doctor)\b.*?)(?: -- .*)?")
ON_GPU = re.compile(r"\bcuda\b|ncu|nsys")


def why_not_run(line: str) -> str | None:
    """The reason of `NOT_RUN` that fits; None for what is to be run."""
    if VERB_ALONE.fullmatch(line):
        return "names a verb, and is no call"
    return next((reason for pattern, reason in NOT_RUN.items() if re.search(pattern, line)), None)


def _to_run() -> list[Block]:
    """Blocks without the lines that are not run, or were run of an earlier block."""
    seen: set[str] = set()
    found = []
    for block in blocks():
        lines = []
        for line in block.lines:
            alone = ALONE.fullmatch(line)
            if why_not_run(line) is None and (alone is None or alone[1] not in seen):
                lines.append(line)
            if alone is not None:
                seen.add(alone[1])
        if lines:
            found.append(Block(block.page, tuple(lines)))
    return found


RUN = _to_run()


@pytest.fixture
def plain(tmp_path: Path) -> Sandbox:
    return furnish(tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("block", RUN, ids=str)
def test_what_is_shown_runs_as_it_stands(
    block: Block, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text = "\n".join(block.lines)
    libraries = request.getfixturevalue("nvidia") if ON_GPU.search(text) else None
    peaks = libraries is None and re.search(r"profkit doctor(?!.*--backend mps)", text) is not None
    sandbox = furnish(tmp_path, libraries, numpy=not peaks, history="profkit history" in text)
    for name in re.findall(r"--(?:report|output|out|to) (\S+)", text):
        sandbox.without(name)
    for line in block.lines:
        done = sandbox.type(line.replace("profkit profile ", "profkit profile --plan "))
        said = f"{block.page} shows: {line}\nit ended with {done.returncode} and said:\n{done.stderr}{done.stdout}"
        assert done.returncode == ENDS.get(line, 0), said[-4000:]
        assert "Traceback" not in done.stderr, said[-4000:]


@pytest.mark.parametrize(
    "block", [b for b in blocks() if all(why_not_run(line) for line in b.lines)], ids=str
)
def test_what_is_not_run_is_a_line_of_shell_at_least(block: Block) -> None:
    for line in block.lines:
        text = re.sub(r"\.\.\.|[\[\]|]", "", line.removeprefix("# ").removeprefix("$ "))
        done = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True)
        assert done.returncode == 0, f"{block.page}: {line}: {done.stderr}"


def test_nothing_is_excused_that_is_not_shown() -> None:
    lines = [line for block in blocks() for line in block.lines]
    assert sorted(set(ENDS) - set(lines)) == []
    assert len(lines) > 40  # the search finds something


def _programs() -> list[tuple[str, str]]:
    """Each Python block; those of one page go on from each other, as a reader would type them."""
    found = []
    for page in PAGES:
        code = fenced(page, "python")
        found += [(f"{page.name} {n}", "\n".join(code[:n])) for n in range(len(code), 0, -1)][:1]
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(("page", "code"), _programs(), ids=lambda value: value[:30])
def test_the_python_that_is_shown_runs(page: str, code: str, plain: Sandbox) -> None:
    """`step` is the reader's own function, and pandas and polars may be absent: then their blocks are left out."""
    if re.search("^import torch", code, re.M) and plain.type("python -c 'import torch'").returncode:
        pytest.skip("there is no torch in the sandbox; tests/evaluation runs what needs it")
    text = f"import time\n\nstep = lambda: time.sleep(0.002)\n{code}"
    for library in ("pandas", "polars", "torch"):
        if plain.type(f"python -c 'import {library}'").returncode:
            name = "profkit.sweep" if library == "torch" else library
            text = re.sub(
                rf"^(?:import|from) {re.escape(name)}\b.*?(?=^import |^from |\Z)", "", text, flags=re.M | re.S
            )
    (plain.folder / "shown.py").write_text(text)
    done = plain.type("python shown.py")
    assert done.returncode == 0, f"{page}\n{text}\n{done.stderr}"


def test_a_command_that_fails_is_seen(plain: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above can fail: an option that is not there, and a file that is not there."""
    check: Callable[[str], int] = lambda line: plain.type(line).returncode  # noqa: E731
    assert check("profkit summarize REPORT") == 0
    assert check("profkit summarize REPORT --no-such-option") == 2
    assert check("profkit summarize no-such-file") == 2
