"""A recording of this process as a judged run: by the readers, rules and types of every run."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from profkit.analysis.stacks.files import write_speedscope
from profkit.analysis.summaries.host import time_split
from profkit.backends import DEFAULT, backend_of_report
from profkit.backends.source_lines import with_source
from profkit.core.process import ipython_shell
from profkit.core.types import (
    RUN,
    Fact,
    PassResult,
    Reading,
    Report,
    RunDocument,
    RunState,
    Source,
    Workload,
)
from profkit.fronts.recording import STACKS, TRACE, PartRecording, PartSampler
from profkit.hardware.machine import read_machine
from profkit.profiling.api import Run
from profkit.profiling.summarize import judge_document, read_report
from profkit.runtime.passes.secrets import mask_command

ADDED = "memory.rss_added"
FLAMES = "artifacts/stacks.speedscope.json"
MIN_SAMPLES = 20  # samples: of fewer, shares are hardly known
SHORT = 0.1  # s: of fewer samples in less than that, nothing is said of where the time goes


def empty_run(recording: PartRecording) -> Run:
    """Return the run of a recording that has not ended."""
    return Run(_document(recording, "running", None), recording.folder, recording)


def read_recording(recording: PartRecording, state: RunState, failure: str | None) -> RunDocument:
    """Return the run of a recording that has ended. Raises UnreadableReport if its file is damaged."""
    document, sampler = _document(recording, state, failure), recording.sampler
    if sampler is None:
        skipped = PassResult("stacks", None, "skipped", reason=recording.reason)
        return replace(document, passes=(skipped,), notes=(recording.reason,) if recording.reason else ())
    peak = Reading("memory.rss_peak", float(sampler.peak), "B", "measured", RUN, Source("psutil", "rss"))
    if recording.calls is not None:  # what was looked at has all that came between them, too
        document = replace(
            document,
            readings=(peak,),
            facts={"calls": str(recording.calls), **({"overlap": "some"} if recording.overlaps else {})},
        )
    else:
        added = replace(peak, metric=ADDED, value=float(sampler.after - sampler.before))
        document = replace(document, readings=(peak, added), time_split=time_split(sampler.usage))
    document = _with_stacks(document, recording, sampler)
    trace = next(recording.folder.glob(f"{TRACE}.*.json"), None)
    if trace is not None:
        document = _with_trace(document, recording, trace)
        if recording.calls is not None and recording.calls > 1:  # the trace ended with the first pause
            first = Fact.of("kernels-of-first-call", count=recording.calls)
            document = replace(document, notes=(*document.notes, first))
    return judge_document(document, ())


def _document(recording: PartRecording, state: RunState, failure: str | None) -> RunDocument:
    command = mask_command(sys.orig_argv)[0] if ipython_shell() is None else ()  # else it is that of a kernel
    started = datetime.fromtimestamp(recording.started, timezone.utc).isoformat(timespec="seconds")
    workload = Workload(tuple(command), recording.name, os.getcwd(), sys.executable)
    return RunDocument(recording.name, DEFAULT, state, workload, started, read_machine(), failure=failure)


def _with_stacks(document: RunDocument, recording: PartRecording, sampler: PartSampler) -> RunDocument:
    folder = recording.folder
    report = read_report(folder / STACKS)
    cells = folder / "cells"  # as files, so that their source is read like any other
    cells.mkdir(exist_ok=True)
    for name, text in sampler.texts.items():
        (cells / name).write_text(text, encoding="utf-8")
    sampled = with_source(report, replace(document.workload, folder=str(cells)))
    write_speedscope(report.stacks, folder / FLAMES, recording.name)
    if (count := int(report.facts.get("samples", 0))) < MIN_SAMPLES:
        few = Fact.of("short-recording", count=count, seconds=recording.seconds)
        document = replace(document, notes=(few,))
    if sampled is not None and (count >= MIN_SAMPLES or recording.seconds >= SHORT):
        document = replace(document, sampled=(sampled,))
    done = PassResult("stacks", None, "finished", seconds=recording.seconds, artifacts=(STACKS, FLAMES))
    return _added(document, report, done)


def _with_trace(document: RunDocument, recording: PartRecording, path: Path) -> RunDocument:
    report = read_report(path)
    backend = backend_of_report(report).name
    document = replace(document, backend=backend, trace=report.trace, gpus=report.gpus)
    document = replace(document, facts={**document.facts, **report.facts})
    artifacts = (str(path.relative_to(recording.folder)),)
    done = PassResult("trace", report.tool, "finished", seconds=recording.seconds, artifacts=artifacts)
    return _added(document, report, done)


def _added(document: RunDocument, report: Report, done: PassResult) -> RunDocument:
    """Return the document with its pass, and with what every report has."""
    return replace(
        document,
        profiles=(*document.profiles, *report.profiles),
        timeline=document.timeline or report.timeline,
        notes=(*document.notes, *report.warnings),
        passes=(*document.passes, done),
    )
