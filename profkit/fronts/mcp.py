"""The verbs as tools of a coding agent, by the Model Context Protocol (the package `mcp`), on stdin and stdout.

Whatever runs is a child process: it can be ended, and what it prints is no part of the protocol.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations

from profkit import __version__
from profkit.core import process
from profkit.core.codec import from_plain_data
from profkit.core.errors import Interrupted, ProfkitError
from profkit.core.files.regular import read_bounded
from profkit.core.files.safe_folder import TemporaryFolder
from profkit.core.types import Comparison, Depth
from profkit.fronts import answers
from profkit.fronts.answers import PARTS, CompareAnswer, DoctorAnswer, RunAnswer
from profkit.fronts.child import verb
from profkit.profiling.api import Run, load
from profkit.profiling.doctor import diagnose
from profkit.profiling.summarize import summarize_report
from profkit.profiling.workload import describe_workload
from profkit.regression.profile_process import ProfileRequest, profile_once
from profkit.reporting.facts import fact_text
from profkit.runtime.passes.secrets import hide_secrets
from profkit.runtime.passes.shown_command import MASK, shown_line

T = TypeVar("T")
Work: TypeAlias = Callable[[Callable[[float], None], threading.Event], T]
INSTRUCTIONS = """Find out where a program spends its time, and whether a change made it faster.
1. profile(command) runs it: where the time goes (hot_spots), what to change (insights, with file and line).
2. Change that line. 3. compare(command) runs the last commit and the files as they are in turn: improved, same,
regressed, ambiguous. Answers are short: summarize(id, part) has the rest."""
_TICK = 2.0  # seconds between two messages of progress
_LAST_WORDS = 30.0  # seconds that a child may take beyond its measurements
_EXAMPLE = 'command: ["python", "bench.py"]'


class Tools:
    """What an agent may do below `root`, in `budget` seconds of running commands."""

    def __init__(self, root: Path, budget: float) -> None:
        self._root, self._left = root.resolve(), budget
        self._one = anyio.Lock()  # two that run at a time would measure each other
        self.running = threading.Lock()  # held by the thread whose processes run

    async def profile(
        self,
        command: list[str],
        context: Context,
        cwd: str = ".",
        budget: float = 30.0,
        depth: Depth = "quick",
    ) -> Annotated[CallToolResult, RunAnswer]:
        """Run a command (its words, no shell): where the time goes, what to change, and the most that can be won.

        More depth, and a larger budget (seconds), has counters: gate, standard, full.
        """
        folder, words, budget = self._folder(cwd), tuple(command), self._granted(budget)
        self._check(words, folder)
        request = ProfileRequest(
            describe_workload(words).name, words, "auto", depth, cwd=folder,
            timeout=budget, limit=budget, budget=2 * budget + _LAST_WORDS,
        )  # fmt: skip
        into = self._root / "reports"
        done = await self._run(
            context, words, budget, lambda tick, end: profile_once(request, into, tick, end)
        )
        if done.document is None or done.folder is None or done.document.state != "complete":
            raise _error(fact_text(done.reason), done.fix)
        return _result(answers.of_run(Run(done.document, done.folder), self._id(done.folder)))

    async def compare(
        self,
        context: Context,
        command: list[str] | None = None,
        base: str = "HEAD",
        baseline: str | None = None,
        candidate: str | None = None,
        cwd: str = ".",
        budget: float = 60.0,
        metric: str | None = None,
        cause: bool = False,
    ) -> Annotated[CallToolResult, CompareAnswer]:
        """Is it faster or slower, and is that real? `command`: the commit `base` and the files as they are in turn.

        Or `baseline` and `candidate`: two runs (ids) or reports. `cause` also looks for the reason. `metric` is the
        only one that decides.
        """
        folder, words = self._folder(cwd), ["--metric", metric] if metric else []
        if command:
            budget = self._granted(budget)
            self._check(command, folder)
            words += [
                "--base",
                base,
                "--budget",
                str(budget),
                *([] if cause else ["--no-cause"]),
                "--",
                *command,
            ]
        elif baseline and candidate:
            words += [str(self._path(each)) for each in (baseline, candidate)]
        else:
            raise _error("compare takes a command, or a baseline and a candidate", _EXAMPLE)

        def work(tick: Callable[[float], None], end: threading.Event) -> Comparison:
            with TemporaryFolder("compare") as name:
                printed, limit = Path(name) / "printed", 2 * budget + _LAST_WORDS
                line = verb("compare", "--format", "json", "--quiet", *words)
                process.run(line, cwd=folder, timeout=limit, tick=tick, cancel=end, printed=printed)
                document = json.loads(
                    read_bounded(printed).decode() or '{"error": {"message": "no end", "fix": null}}'
                )
            if "error" in document:
                raise ProfkitError(document["error"]["message"], document["error"]["fix"])
            return from_plain_data(Comparison, document)

        return _result(answers.of_comparison(await self._run(context, command or (), budget, work)))

    async def summarize(
        self, path: str, part: str | None = None, start: int = 0
    ) -> Annotated[CallToolResult, RunAnswer]:
        """What is in a run (its id) or any profiler's report; of a `part` (hot_spots, insights, verdicts, readings)

        all rows from `start` on.
        """
        if part is not None and part not in PARTS:
            raise _error(f"there is no part {part!r}", f"part: {', '.join(PARTS)}")
        file = self._path(path)
        run = await _in_thread(lambda: load(file))
        return _result(answers.of_run(run, self._id(file), part, max(0, start)))

    async def check(self, path: str, targets: str | None = None) -> Annotated[CallToolResult, RunAnswer]:
        """Judge a run (its id) or a report by the default targets, or by those of a YAML file: the worst first."""
        file, rules = self._path(path), self._path(targets) if targets else None
        run = await _in_thread(lambda: Run(summarize_report(file, rules), file))
        return _result(answers.of_run(run, self._id(file), "verdicts"))

    async def doctor(self, backend: str = "auto") -> Annotated[CallToolResult, DoctorAnswer]:
        """What this machine can measure (about ten seconds), and the line that fixes what it cannot."""
        return _result(answers.of_checks(await _in_thread(lambda: diagnose(backend))))

    # ------------------------------------------------------------ what may be done

    def _path(self, name: str) -> Path:
        path = (self._root / name).resolve()
        if not path.is_relative_to(self._root):
            raise _error(f"{name} is not below {self._root}", "profkit mcp FOLDER, with a folder around both")
        return path

    def _folder(self, name: str) -> Path:
        if not (path := self._path(name)).is_dir():
            raise _error(f"{name} is no folder", 'cwd: "."')
        return path

    def _id(self, path: Path) -> str:
        return str(path.relative_to(self._root))

    def _check(self, command: Sequence[str], folder: Path) -> None:
        """Raise ToolError where no word is a file below the root, or one is a path that leads out of it."""
        found = False
        for before, word in zip(("", *command), command, strict=False):
            path = Path(folder, word.partition("=")[2] or word)
            inside = path.resolve().is_relative_to(self._root)
            if before and not inside and (path.exists() or ".." in path.parts):
                raise _error(
                    f"{word} is not below {self._root}", "profkit mcp FOLDER, with a folder around both"
                )
            module = Path(folder, word.replace(".", "/")) if before == "-m" else path
            found |= inside and (path.is_file() or module.is_dir() or module.with_suffix(".py").is_file())
        if not found or command[1] in ("-c", "-e"):
            raise _error(f"{shown_line(command)!r} runs no file below {self._root}", _EXAMPLE)

    def _granted(self, budget: float) -> float:
        """As many seconds as are left of the server's budget at most. Raises ToolError where nothing is."""
        if self._left < 1:
            raise _error("this server's budget is spent", "profkit mcp --budget SECONDS")
        return max(1.0, min(budget, self._left))

    async def _run(self, context: Context, command: Sequence[str], budget: float, work: Work[T]) -> T:
        """Say what is going to run, then do it in a thread; where the client cancels, its processes end."""
        if not command:
            return await _in_thread(lambda: work(lambda _: None, threading.Event()))
        async with self._one:
            line = f"runs {shown_line(command)} for about {budget:.0f} s"
            await context.report_progress(0.0, budget, line)
            end, begin, told = threading.Event(), time.monotonic(), [0.0]

            def tick(seconds: float) -> None:
                if seconds - told[0] >= _TICK and not end.is_set():
                    told[0] = seconds
                    with contextlib.suppress(Exception):  # the client may be gone
                        anyio.from_thread.run(context.report_progress, seconds, max(seconds, budget), line)

            def held() -> T:
                with self.running:
                    return work(tick, end)

            try:
                return await _in_thread(held)
            finally:
                end.set()
                self._left -= time.monotonic() - begin


async def _in_thread(work: Callable[[], T]) -> T:
    """The server goes on to hear its client: also that it cancels."""

    def asked() -> T:
        try:
            return work()
        except ProfkitError as fault:
            raise _error(fault.message, fault.fix) from None

    return await anyio.to_thread.run_sync(asked, abandon_on_cancel=True)


def _error(message: str, fix: str | None = None) -> ToolError:
    said = hide_secrets(message[:1500], lambda _: MASK)
    return ToolError(f"{said}\nfix: {fix}" if fix else said)


def _result(answer: RunAnswer | CompareAnswer | DoctorAnswer) -> CallToolResult:
    text = TextContent(type="text", text=answers.text_of(answer))
    return CallToolResult(content=[text], structured_content=asdict(answer))


def serve(folder: Path, budget: float) -> None:
    """Serve until standard input is closed; a Ctrl-C ends what runs, and leaves the process."""
    tools = Tools(folder, budget)
    server = MCPServer("profkit", instructions=INSTRUCTIONS, version=__version__, log_level="ERROR")
    for tool in (tools.profile, tools.compare, tools.summarize, tools.check, tools.doctor):
        runs = tool in (tools.profile, tools.compare)
        server.add_tool(
            tool, description=inspect.getdoc(tool), annotations=ToolAnnotations(read_only_hint=not runs)
        )
    try:
        server.run("stdio")
    except KeyboardInterrupt:
        tools.running.acquire(timeout=_LAST_WORDS)
        sys.stderr.write("error: interrupted\n")
        sys.stderr.flush()
        os._exit(Interrupted.exit_code)  # a thread waits for the client's next line, and nothing wakes it
