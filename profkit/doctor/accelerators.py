"""The backend that is not built yet: what of its tools is here, said honestly in one line each."""

from __future__ import annotations

import platform
from collections.abc import Iterator

from profkit.doctor.trial import version_of
from profkit.model import Check


def mps_checks() -> Iterator[Check]:
    """Apple's profiler, and that profkit does not use it yet."""
    if platform.system() != "Darwin":
        yield Check("mps backend", "missing", "Metal exists only on macOS; profkit has no mps backend yet")
        return
    found = list(_tools((("xctrace", "version"),)))
    yield _backend("mps", found)
    yield from found


def _backend(name: str, found: list[Check]) -> Check:
    here = [check.name for check in found if check.state == "ok"]
    tools = f"{', '.join(here)} found" if here else "none of its tools found"
    return Check(f"{name} backend", "missing", f"{tools}; profkit does not use them yet", "--backend cpu")


def _tools(commands: tuple[tuple[str, str], ...]) -> Iterator[Check]:
    for tool, flag in commands:
        path, trial = version_of(tool, flag)
        if path is None or trial is None:
            yield Check(tool, "missing", "not on PATH")
        elif not trial.ok:
            yield Check(tool, "refused", f"{trial.ending}: {trial.first_line[:160]}", path=path)
        else:
            version = next((line for line in trial.output.splitlines() if "ersion" in line), trial.first_line)
            yield Check(tool, "ok", "answers", path=path, version=version.strip()[:80])
