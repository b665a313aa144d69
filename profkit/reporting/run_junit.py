"""A run as JUnit XML: a case for every verdict on the run, its regions and functions, and one for every pass.

A missed target is a failure. What is not known is skipped with its reason, as `check` ends with 0 there, and an error
with `strict`, where `check` ends with 5: never green. A target that does not apply is skipped. A pass or a workload
that failed is an error. A kernel's own verdict fails no run, so it is told in the output and is no case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from profkit.core.types import PassResult, RunDocument, Verdict
from profkit.reporting.junit import _document
from profkit.reporting.order import (
    WORDS,
    actions,
    command,
    conditions,
    gain,
    gpu_lines,
    machine_line,
    named,
    time_line,
    troubles,
)
from profkit.reporting.view import Case, Cases, CaseState

_PASS_STATES: dict[str, CaseState] = {"finished": "passed", "skipped": "skipped"}


def render(documents: Sequence[RunDocument], *, strict: bool = False) -> str:
    """The runs as one XML document, one suite each."""
    return _document([suite_of(document, strict=strict) for document in documents], "error")


def suite_of(document: RunDocument, *, strict: bool = False) -> Cases:
    """One run as a suite. The time of a case is that of the pass; a verdict takes none."""
    cases = [_verdict(verdict, document, strict) for verdict in document.verdicts if _counts(verdict)]
    cases += [_pass(result, document) for result in document.passes]
    if document.state != "complete" or document.failure is not None:
        why = document.failure or f"the run is {document.state}: what it has is not all of it"
        cases.insert(0, Case(_group(document, "run"), "workload", "error", why, kind=document.state))
    elif not document.verdicts:
        why = "nothing was judged: no target speaks of what is in it"
        cases.append(Case(_group(document, "targets"), "any target", "skipped", why, kind="not-judged"))
    seconds = sum(result.seconds for result in document.passes)
    name = f"{document.name} on {document.backend}"
    return Cases(
        name, tuple(cases), document.started, seconds, tuple(_properties(document).items()), _output(document)
    )


def _counts(verdict: Verdict) -> bool:
    return verdict.scope.kind != "kernel"


def _verdict(verdict: Verdict, document: RunDocument, strict: bool) -> Case:
    scope = verdict.scope
    apart = scope.kind == "function" or (scope.name and _regions(document) > 1)
    inside = f"in.{named(scope)}" if apart else ""
    group = _group(document, f"targets{'.' if inside else ''}{inside}")
    why = verdict.reason + gain(verdict)
    unknown: Literal["error", "skipped"] = "error" if strict else "skipped"
    match verdict.verdict:
        case "pass":
            return Case(group, verdict.target)
        case "fail":
            advice = "\n".join(f"try: {line}" for line in verdict.advice)
            return Case(group, verdict.target, "failure", why, f"{why}\n{advice}".strip(), kind="missed")
        case "unknown":
            advice = "\n".join(f"try: {line}" for line in verdict.advice)
            return Case(group, verdict.target, unknown, why, f"{why}\n{advice}".strip(), kind="unknown")
    return Case(group, verdict.target, "skipped", why, kind="not-applicable")


def _regions(document: RunDocument) -> int:
    """How many regions there are: one alone needs no name of its own."""
    return len({verdict.scope for verdict in document.verdicts if verdict.scope.kind == "region"})


def _pass(result: PassResult, document: RunDocument) -> Case:
    name = f"{result.name} ({result.tool})" if result.tool else result.name
    state = _PASS_STATES.get(result.state, "error")
    why = "" if state == "passed" else result.reason or "no reason is known"
    told = [why, f"fix: {result.fix}" if result.fix else "", f"log: {result.log}" if result.log else ""]
    detail = "\n".join(part for part in told if part)
    return Case(_group(document, "passes"), name, state, why, detail, result.seconds, kind=result.state)


def _group(document: RunDocument, part: str) -> str:
    return f"profkit.{document.name}.{part}"


def _properties(document: RunDocument) -> dict[str, str]:
    machine = machine_line(document)
    told = {
        "command": command(document),
        "backend": document.backend,
        "started": document.started,
        "machine": machine or "",
        "gpu": "; ".join(gpu_lines(document)),
        "time": time_line(document) or "",
    }
    told |= {name: value for name, value in conditions(document).items() if name not in told}
    return {name: value for name, value in told.items() if value}


def _output(document: RunDocument) -> str:
    lines = [f"{number}. {a.what} ({a.why})" for number, a in enumerate(actions(document), 1)]
    lines = ["What to do first", *lines] if lines else []
    failed = [v for v in document.verdicts if v.scope.kind == "kernel" and v.verdict == "fail"]
    for verdict in failed:
        lines.append(f"{WORDS[verdict.verdict]} {verdict.target} in {named(verdict.scope)}: {verdict.reason}")
    lines += [f"{len(troubles(document))} passes did not finish"] if troubles(document) else []
    return "\n".join([*lines, *document.notes])
