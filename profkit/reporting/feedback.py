"""What is wrong with a kernel, as a text for whoever writes the next one: a language model or a person.

The first line is the outcome, the last one what to do next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profkit.analysis.evaluation.scores import slowness
from profkit.analysis.evaluation.witnesses import DECOY_SHARE
from profkit.core.formatting import format_figures, format_percent, format_quantity, percent_text, plural
from profkit.core.types import UNDECIDED, Fact, Insight, Speedup, TestResult
from profkit.reporting.facts import fact_text

SHOWN_FAILURES = 5  # one of each kind first
SHOWN_TIMES = 12
MESSAGE_LINES = 20  # of an exception: a compiler shows the code before its error
SHOWN_INSIGHTS = 3
SHOWN_REASON = 600  # characters of one reason
FAR = 1000.0  # times what rounding explains: how many times more says nothing
AT_BOUND = 0.9  # of what the hardware allows: the rest is not worth another attempt


@dataclass(frozen=True)
class JudgedKernel:
    """A kernel and what is known of it.

    `problem`: why it could not be tested at all. `limit`, `insights`: of the profile of the test with the
    arguments `profiled`.
    """

    code: str
    file: str  # its name, as tracebacks have it
    results: tuple[TestResult, ...] = ()
    problem: Fact | None = None
    limit: Fact | None = None
    insights: tuple[Insight, ...] = ()
    profiled: str = ""

    @property
    def decided(self) -> tuple[TestResult, ...]:
        """Return the tests on which something could be decided; what the evaluation itself lost is no fault of the
        kernel.
        """
        return tuple(result for result in self.results if result.status not in (*UNDECIDED, "lost"))

    @property
    def failed(self) -> tuple[TestResult, ...]:
        """Return the tests that it did not pass."""
        return tuple(result for result in self.decided if result.status != "passed")


_PATH = re.compile(r"(?<![\w./\\])(?:[A-Za-z]:[\\/]|/)(?:[^\s:;,\"'`()<>/\\]+[/\\])+(?=[^\s:;,\"'`()<>/\\])")


def format_feedback(kernel: JudgedKernel) -> str:
    """Return the feedback on a kernel, as Markdown: outcome, failed tests, times, what limits it, what to do next.

    Of files it has the names: a model learns nothing from folders of this machine.
    """
    return "\n".join(_lines(kernel)).strip() + "\n"


def _named(text: str) -> str:
    """Return the text with each absolute path as the name of its file."""
    return _PATH.sub("", text)


def describe_excess(share: float) -> str:
    """Return how far an error is beyond rounding: `40.0 times what rounding explains`."""
    if share > FAR:
        return f"no rounding error: more than {FAR:,.0f} times what rounding explains"
    return f"{format_figures(share)} times what rounding explains"


def calls_others(results: Sequence[TestResult]) -> bool:
    """Return whether in some timed test the kernels of others do all the work on the device."""
    return any(result.own_share is not None and result.own_share < DECOY_SHARE for result in results)


def share_of_bound(results: Sequence[TestResult]) -> float | None:
    """Return the least share of the hardware's limit that a timed test reaches; None unless it is known of each."""
    shares = [
        result.bound_seconds / result.seconds if result.bound_seconds and result.seconds else None
        for result in results
        if result.speedup is not None
    ]
    known = [share for share in shares if share is not None]
    return min(known) if known and len(known) == len(shares) else None


def _lines(kernel: JudgedKernel) -> Iterator[str]:
    if kernel.problem:
        yield f"**It could not be tested.** {_named(problem := fact_text(kernel.problem))}"
        yield from _code_lines(kernel, problem)
        return
    decided, failed = kernel.decided, kernel.failed
    load = next((result for result in failed if result.status == "load-error"), None)
    if load is not None:
        yield f"**It cannot be loaded.** {_cut(fact_text(load.reason))}"
        yield from _code_lines(kernel, load.traceback or fact_text(load.reason))
        yield from ("", "Return the whole file again, corrected.")
        return
    if not decided:
        reasons = dict.fromkeys(
            fact_text(result.reason) for result in kernel.results if result.status == "not-run"
        )
        why = f" It was not run: {'; '.join(map(_cut, reasons))}." if reasons else ""
        yield f"**Nothing could be decided**: every test was skipped, or could not be carried out.{why}"
        return
    passed = len(decided) - len(failed)
    if failed:
        yield f"**Not correct: {passed} of {plural(len(decided), 'test')} passed.**"
        yield from _failures(kernel, failed)
        yield from ("", "Make it correct on these arguments first; speed counts only when all tests pass.")
        return
    lost = sum(result.status == "lost" for result in kernel.results)
    yield f"**Correct: all {plural(len(decided), 'test')} passed.**" + (
        f" {lost} more could not be carried out." if lost else ""
    )
    yield from _times(decided)
    yield from _limits(kernel)
    yield from ("", _next_for_correct(kernel))


# ---------------------------------------------------------------- what is wrong


def _failures(kernel: JudgedKernel, failed: Sequence[TestResult]) -> Iterator[str]:
    """Yield each kind of failure once, with the arguments of the first tests that it has."""
    groups: dict[tuple[object, ...], list[TestResult]] = {}
    for result in failed:
        name = fact_text(result.reason) if result.fault != "values" else result.test.id
        groups.setdefault((result.status, result.fault, result.error_type, name), []).append(result)
    shown = _one_of_each_kind(list(groups.values()))[:SHOWN_FAILURES]
    for group in shown:
        first = group[0]
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        yield ""
        yield f"- `{first.test.arguments}`{more}: {first.status}: {_cut(fact_text(first.reason))}{_size(first)}"
        if first.last_line:
            yield f"  Its last line: `{_cut(first.last_line)}`"
        yield from _code_lines(kernel, first.traceback)
        yield from _message_lines(first.traceback)
    if left := len(failed) - sum(map(len, shown)):
        yield from ("", f"- {left} more failed.")


def _one_of_each_kind(groups: Sequence[list[TestResult]]) -> list[list[TestResult]]:
    """Return the first group of each kind (status, fault, exception) before the second ones; the order is kept."""
    rank: dict[tuple[object, ...], int] = {}
    ranked = []
    for group in groups:
        kind = (group[0].status, group[0].fault, group[0].error_type)
        rank[kind] = rank.get(kind, 0) + 1
        ranked.append((rank[kind], group))
    return [group for _, group in sorted(ranked, key=lambda pair: pair[0])]


def _message_lines(trace: str) -> Iterator[str]:
    """Yield an exception's message of several lines, as a compiler's: it begins at the margin, behind the frames."""
    lines = trace.rstrip().split("\n")
    frame = max((number for number, line in enumerate(lines) if line.startswith('  File "')), default=-1)
    begin = next((n for n in range(frame + 1, len(lines)) if not lines[n].startswith(" ")), len(lines))
    message = lines[begin:]
    if frame >= 0 and len(message) > 1:
        yield from ("", "```", *(_named(line)[:200] for line in message[-MESSAGE_LINES:]), "```")


def _size(result: TestResult) -> str:
    """Return how large the error is, where the values are wrong."""
    if result.fault != "values" or result.max_abs_error is None:
        return ""
    allowed = f", {describe_excess(result.allowed_share)}" if result.allowed_share is not None else ""
    return f" (largest error {format_figures(result.max_abs_error)}{allowed})"


def _code_lines(kernel: JudgedKernel, text: str) -> Iterator[str]:
    """Yield the line of the kernel's file that a traceback or a message names last, with its neighbours."""
    name = re.escape(kernel.file)
    numbers = re.findall(rf'{name}["\']?, line (\d+)', text) or re.findall(rf"{name}:(\d+)", text)
    code = kernel.code.splitlines()
    if not numbers or not 0 < (number := int(numbers[-1][:9])) <= len(code):
        return
    yield ""
    yield "```"
    for at in range(max(1, number - 1), min(len(code), number + 1) + 1):
        yield f"{'->' if at == number else '  '} {at:4d}  {code[at - 1][:200]}"
    yield "```"


# ---------------------------------------------------------------- how fast it is


def _times(decided: Sequence[TestResult]) -> Iterator[str]:
    timed = sorted(
        (result for result in decided if result.speedup is not None),
        key=lambda result: -(result.seconds or 0.0),
    )
    if not timed:
        return
    yield ""
    for result in timed[:SHOWN_TIMES]:
        assert result.speedup is not None
        yield f"- `{result.test.arguments}`: {describe_speed(result.speedup)}{_seconds(result)}"
    if len(timed) > SHOWN_TIMES:
        yield f"- {len(timed) - SHOWN_TIMES} more were timed, each shorter."
    if calls_others(timed):
        yield "- Next to none of the GPU's time is in kernels of this file: it calls those of PyTorch or its libraries."
    remarks = {remark.kind: remark for result in reversed(timed) for remark in result.remarks}
    for remark in reversed(remarks.values()):  # each kind once, of the test that takes longest
        yield f"- {_named(fact_text(remark))}."


def describe_speed(speedup: Speedup) -> str:
    """Return `0.509 times as fast as PyTorch (0.435 to 0.564): SLOWER`."""
    low, middle, high = (format_figures(value) for value in (speedup.low, speedup.median, speedup.high))
    between = f"{low} to {high}" if speedup.pairs > 1 else "no interval"
    return f"{middle} times as fast as PyTorch ({between}): {speedup.word}"


def _seconds(result: TestResult) -> str:
    if result.seconds is None:
        return ""
    text = f"; {format_quantity(result.seconds, 's')}"
    if result.reference_seconds is not None:
        text += f", PyTorch {format_quantity(result.reference_seconds, 's')}"
    if result.bound_seconds is not None:
        text += f", the hardware allows {format_quantity(result.bound_seconds, 's')}"
    return text


def _limits(kernel: JudgedKernel) -> Iterator[str]:
    """Yield what its profile says of the test that was profiled."""
    if kernel.limit is None and not kernel.insights:
        return
    yield ""
    yield f"Profile of `{kernel.profiled}`:" if kernel.profiled else "Its profile:"
    yield ""
    if kernel.limit is not None:
        yield f"- Limited by: {_named(fact_text(kernel.limit))}."
    for insight in kernel.insights[:SHOWN_INSIGHTS]:
        gain = insight.gain
        at_most = f" It could save up to {percent_text(100 * gain.at_most)} of {gain.of}." if gain else ""
        said = _named(f"{insight.evidence}. {insight.change}")
        yield f"- **{insight.title}**{_place(kernel, insight)}: {said}{at_most}"


def _place(kernel: JudgedKernel, insight: Insight) -> str:
    """Return where it is: the line of this file with its text, else the kernel or function."""
    where, code = insight.where, kernel.code.splitlines()
    own = where.file is not None and re.split(r"[/\\]", where.file)[-1] == kernel.file
    if own and where.line is not None and 0 < where.line <= len(code):
        return f", line {where.line}: `{code[where.line - 1].strip()[:120]}`"
    name = where.kernel or where.function or where.operation
    return f" (in `{name[:120]}`)" if name else ""


def _next_for_correct(kernel: JudgedKernel) -> str:
    timed = [result for result in kernel.decided if result.speedup is not None]
    share = share_of_bound(timed)
    if not timed:
        return "It is correct. Nothing was timed."
    if share is not None and share >= AT_BOUND:
        return f"It reaches {format_percent(100 * share)} % of what the hardware allows: there is nothing left to win."
    if calls_others(timed):
        return "Write the arithmetic in kernels of this file: PyTorch's own can be had without it."
    slowest = min(timed, key=slowness)
    target = f"The lowest speed-up is that of `{slowest.test.arguments}`"
    if kernel.insights:
        return f"Keep it correct, and make it faster: begin with **{kernel.insights[0].title}**. {target}."
    return f"Keep it correct, and make it faster. {target}."


def _cut(text: str, most: int = SHOWN_REASON) -> str:
    """Return a text on one line, with names for paths, cut where it is long."""
    text = _named(" ".join(text.split()))
    return text if len(text) <= most else text[:most] + " ..."
