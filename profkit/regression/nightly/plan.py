"""Show what a night would run: nothing from the file is started, and no variable is set."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from profkit.core.formatting import plural
from profkit.regression.nightly.config import NightConfig, WorkloadSpec
from profkit.regression.profile_process import profile_options
from profkit.reporting.view import FieldList, Section, View
from profkit.runtime.passes.secrets import mask_command


def plan_view(config: NightConfig) -> View:
    """Build the view of each workload: the call that would profile it, the folder, and its variables' names."""
    pairs = config.paired == "always"
    setup = [("set-up of the base commit", _line(config.pairs.setup))] if pairs and config.pairs.setup else []
    night = (
        ("beside the base commit", (config.baseline or "the last good night's") if pairs else "never"),
        *setup,
        ("for the night", f"{config.budget:g} s" if config.budget is not None else "no limit"),
        ("history", str(config.history)),
        ("reports", str(config.output)),
    )
    return View(
        f"Plan: {config.name}, {plural(len(config.workloads), 'workload')}. Nothing was run.",
        (
            *(Section(spec.name, (FieldList(tuple(_facts(config, spec))),)) for spec in config.workloads),
            Section("In all", (FieldList(night),)),
        ),
    )


def _facts(config: NightConfig, spec: WorkloadSpec) -> Iterator[tuple[str, str]]:
    options = profile_options(spec, config.output)
    yield "runs", f"{shlex.join(('profkit', *options))} -- {_line(spec.command)}"
    yield "in", str(spec.cwd)
    yield "for", f"{spec.budget:g} s at most"
    if spec.env:
        yield "with the variables", ", ".join(sorted(spec.env))


def _line(command: Sequence[str]) -> str:
    return shlex.join(mask_command(command)[0])
