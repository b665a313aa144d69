"""The loop of one operation: ask for a kernel, extract the code, judge it, give feedback, and ask again."""

from __future__ import annotations

import shlex
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.analysis.evaluation.scores import operation_results
from profkit.analysis.evaluation.witnesses import bottleneck_of
from profkit.analysis.generation import best_attempt
from profkit.analysis.judge.findings import kernel_insights
from profkit.core.errors import MachineError
from profkit.core.files.regular import read_bounded
from profkit.core.files.safe_folder import write_whole
from profkit.core.types import (
    Attempt,
    EvaluationDocument,
    Fact,
    GenerationLimits,
    Speedup,
    StopReason,
)
from profkit.generation.judging import AttemptJudge, KernelFile, NoProfile, profile_attempt
from profkit.generation.model import BudgetSpent, ChatMessage, Model, ModelFailed
from profkit.generation.prompt import FoundCode, KernelTask, find_code, first_messages
from profkit.generation.request import GenerationRequest, attempt_id, attempts_of, note_stop
from profkit.kernels.campaign import Campaign
from profkit.kernels.evaluation.outputs import write_results
from profkit.reporting.feedback import (
    AT_BOUND,
    JudgedKernel,
    describe_speed,
    format_feedback,
    share_of_bound,
)

ANSWER = "_answer.md"  # how the names of files with answers end
SHOWN_ANSWER = 2000  # characters of an answer without code that the model sees again
MAX_REPEATED = 3  # answers with the same code, one after the other: it has no other


@dataclass(frozen=True)
class LoopTools:
    """What the loops of all operations share.

    `report` gets an operation and what is being done with it, `note` what is worth a line of its own.
    """

    request: GenerationRequest
    model: Model
    judge: AttemptJudge
    campaign: Campaign[Attempt]
    cancel: threading.Event
    report: Callable[[str, str], None]
    note: Callable[[str], None]


class OperationLoop:
    """The attempts at one operation."""

    def __init__(self, task: KernelTask, folder: str, tools: LoopTools) -> None:
        self._task, self._name, self._tools = task, folder, tools
        self._folder = tools.request.folder / folder
        self._limits: GenerationLimits = tools.request.limits
        self._real_folder = tools.request.folder.resolve()

    def run(self) -> None:
        """Make attempts until there is a reason to stop, which is stored.

        Raises ModelFailed if no other operation can be asked either, MachineError if nothing can be judged or
        written, Stopped and Cancelled if the generation ends.
        """
        operation, campaign = self._task.operation, self._tools.campaign
        try:
            self._make_folder()
            while not (reason := self._reason_to_stop()):
                number = len(self._attempts) + 1
                campaign.settle(attempt_id(operation, number), self._attempt(number))
            note_stop(campaign.journal, operation, reason)
        except BudgetSpent:
            note_stop(campaign.journal, operation, "budget")
        except ModelFailed as failed:
            note_stop(campaign.journal, operation, "failed", Fact.message(failed.message))
            if failed.permanent:
                raise
        except OSError as error:
            again = f"make room, or put the file back, then: profkit generate --resume {self._tools.request.folder}"
            raise MachineError(f"{error.filename or self._folder}: {error.strerror}", again) from error

    @property
    def _attempts(self) -> Sequence[Attempt]:
        return attempts_of(self._tools.campaign.journal.contents, self._task.operation)

    def _reason_to_stop(self, *judged: Attempt) -> StopReason:
        """Return the reason to stop by the stored attempts, and those that are `judged` and not stored yet."""
        return reason_to_stop([*self._attempts, *judged], self._limits.attempts)

    # ---------------------------------------------------------------- one attempt

    def _attempt(self, number: int) -> Attempt:
        tools, operation = self._tools, self._task.operation
        tools.report(operation, f"attempt {number}: asking")
        answer = tools.model.ask(
            self._conversation(), lambda words: tools.report(operation, f"attempt {number}: {words}")
        )
        self._write(f"attempt_{number}{ANSWER}", answer.text)
        file = self._path(f"attempt_{number}.py")
        if answer.stop == "refused":
            code = FoundCode("", Fact("answer-declined"), "no-answer")
        else:
            code = find_code(answer.text, self._task.function, file.name, cut=answer.stop == "length")
        tokens = answer.input_tokens, answer.output_tokens
        attempt = Attempt(number, code.fault or "no-code", *tokens, reason=code.problem)
        kernel = JudgedKernel(code.code, file.name, problem=code.problem)
        if code.code:
            self._write(f"attempt_{number}.py", code.code)
            attempt = replace(attempt, file=self._relative(file))
        if not code.fault and (same := self._same_as(code.code)):
            problem = Fact.of("same-file", number=same)
            attempt = replace(attempt, status="repeated", reason=problem)
            kernel = replace(kernel, problem=problem)
        elif not code.fault:
            attempt, kernel = self._judge(attempt, kernel, file)
        feedback = self._feedback(attempt, kernel)
        return replace(
            attempt, feedback=self._relative(self._write(f"attempt_{number}_feedback.txt", feedback))
        )

    def _judge(self, attempt: Attempt, kernel: JudgedKernel, file: Path) -> tuple[Attempt, JudgedKernel]:
        """Run every test of an attempt, and profile the slowest one if another attempt may learn from that."""
        tools, operation = self._tools, self._task.operation
        folder = self._folder / f"attempt_{attempt.number}"
        tools.report(operation, f"{file.stem}: waiting for the judge")
        with tools.judge.alone():
            tools.report(operation, f"{file.stem}: testing")
            shutil.rmtree(folder, ignore_errors=True)  # of an attempt that was cut off
            document = tools.judge.judge(KernelFile(operation, file, kernel.code, folder))
            write_results(folder, document)
            attempt = replace(_with_results(attempt, document), evaluation=self._relative(folder))
            kernel = replace(kernel, results=document.results)
            wanted = tools.request.profile_depth != "none" and attempt.speedup is not None
            if not wanted or self._reason_to_stop(attempt):
                return attempt, kernel
            tools.report(operation, f"{file.stem}: profiling")
            try:
                profiled, run = profile_attempt(folder, tools.request.profile_depth, tools.cancel)
            except NoProfile as why:
                tools.note(f"no profile of {file.name}: {why}")
                return attempt, kernel
        limit = bottleneck_of(run)
        # Of a kernel on a GPU the GPU's time alone is timed, and no launching.
        insights = kernel_insights(run) if run.kernels else run.insights
        attempt = replace(
            attempt,
            profile=f"{attempt.evaluation}/{profiled.profile}",
            bottleneck=limit,
            insights=insights,
        )
        return attempt, replace(
            kernel,
            limit=limit,
            insights=insights,
            profiled=profiled.test.arguments,
        )

    def _same_as(self, code: str) -> int | None:
        """Return the earlier attempt with the same code, except for spaces at the ends of lines."""
        for attempt in self._attempts:
            if attempt.file and _stripped(self._read(attempt.file)) == _stripped(code):
                return attempt.number
        return None

    # ---------------------------------------------------------------- what the model sees

    def _conversation(self) -> tuple[ChatMessage, ...]:
        """Build the messages: the task, then the best and the last attempt with their feedback.

        The last two attempts if none is correct.
        """
        attempts = list(self._attempts)
        best = best_attempt(attempts)
        shown = attempts[-2:] if best is None else [best, *attempts[-1:]]
        messages = list(first_messages(self._task))
        for number in sorted({attempt.number for attempt in shown}):
            attempt = attempts[number - 1]
            messages.append(ChatMessage("assistant", self._answer_text(attempt)))
            messages.append(ChatMessage("user", self._read(attempt.feedback)))
        return tuple(messages)

    def _answer_text(self, attempt: Attempt) -> str:
        if attempt.file:
            return f"```python\n{self._read(attempt.file).rstrip()}\n```"
        text = self._read(self._relative(self._path(f"attempt_{attempt.number}{ANSWER}")))
        return text[:SHOWN_ANSWER] or "(nothing)"

    def _feedback(self, attempt: Attempt, kernel: JudgedKernel) -> str:
        lines = [f"Attempt {attempt.number} of {self._limits.attempts}: {attempt.status}.", ""]
        lines.append(format_feedback(kernel))
        if earlier := list(_history([*self._attempts, attempt])):
            lines += ["So far:", "", *earlier, ""]
        return "\n".join(lines)

    # ---------------------------------------------------------------- files

    def _make_folder(self) -> None:
        """Make the operation's folder. Raises MachineError if something else is in its place."""
        self._folder.mkdir(exist_ok=True)
        if self._folder.resolve() != self._real_folder / self._name:
            raise MachineError(
                f"{self._folder} is a link: kernels would be written elsewhere",
                f"rm {shlex.quote(str(self._folder))}",
            )

    def _path(self, name: str) -> Path:
        return self._folder / f"{self._name}_{name}"

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._tools.request.folder).as_posix()

    def _read(self, path: str) -> str:
        """Read a file of the generation, but not a link or a pipe that a kernel put in its place."""
        file = self._tools.request.folder / path
        if file.exists() and not (file.is_file() and file.resolve() == self._real_folder / path):
            raise MachineError(
                f"{file} is not a file of this generation any more",
                "put the file back, or begin a new generation with another --run-id",
            )
        return read_bounded(file).decode(errors="replace")

    def _write(self, name: str, text: str) -> Path:
        path = self._path(name)
        write_whole(path, (text.encode("utf-8", "replace").decode(),))
        return path


def reason_to_stop(attempts: Sequence[Attempt], most: int) -> StopReason:
    """Return why no attempt follows after these, of `most`; empty if one does."""
    best = best_attempt(attempts)
    if best is not None:
        if best.speedup is None:
            return "correct"
        if best.bound_share is not None and best.bound_share >= AT_BOUND:
            return "bound"
    if [attempt.status for attempt in attempts[-MAX_REPEATED:]] == ["repeated"] * MAX_REPEATED:
        return "repeated"
    return "attempts" if len(attempts) >= most else ""


def _with_results(attempt: Attempt, document: EvaluationDocument) -> Attempt:
    (operation,) = operation_results(document)
    failure, mean = operation.first_failure, operation.speedup
    timed = [result for result in document.results if result.speedup is not None]
    speedup = None
    if operation.correct and mean is not None and mean.low is not None and mean.high is not None:
        pairs = sum(result.speedup.pairs for result in timed if result.speedup is not None)
        speedup = Speedup(mean.value, mean.low, mean.high, mean.word, pairs)
    return replace(
        attempt,
        status=operation.status,
        reason=failure.reason if failure is not None else None,
        tests=operation.counted,
        passed=operation.passed,
        speedup=speedup,
        bound_share=share_of_bound(document.results),
        own_share=operation.own_share,
    )


def _history(attempts: Sequence[Attempt]) -> Iterator[str]:
    """Yield a line for each attempt if there are several."""
    best = best_attempt(attempts)
    if len(attempts) > 1:
        for attempt in attempts:
            speed = f", {describe_speed(attempt.speedup)}" if attempt.speedup is not None else ""
            mark = " (the best)" if best is not None and attempt.number == best.number else ""
            tested = attempt.tests and attempt.status != "passed"
            passed = f", {attempt.passed} of {attempt.tests} tests passed" if tested else ""
            yield f"- attempt {attempt.number}: {attempt.status}{passed}{speed}{mark}"


def _stripped(code: str) -> str:
    return "\n".join(line.rstrip() for line in code.strip().splitlines())
