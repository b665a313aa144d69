"""What a maintainer needs of a machine that only a user has: the whole chain on a small program, nothing private."""

from __future__ import annotations

import json
import shlex
import sys
import tarfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from profkit.backends import backend_named, backend_names
from profkit.core import process
from profkit.core.errors import ProfkitError, Progress, UsageError, writing
from profkit.core.files.regular import read_start
from profkit.core.files.safe_folder import chown_to_sudo_user, replacing
from profkit.fronts.child import profkit_argv
from profkit.profilers.redact import Redactor, RemovedText
from profkit.profilers.registry import PROFILERS
from profkit.profiling.doctor import blocking_reason, diagnose
from profkit.profiling.scrub import own_redactor, scrub
from profkit.reporting import json as documents

LIMIT = 300.0  # seconds for one step
_MAX_BYTES = 200_000  # bytes of a log or a document that are packed


@dataclass(frozen=True)
class BundleStep:
    """One call of the chain, how it ended and what it said last, without what is private."""

    name: str
    ending: str
    seconds: float
    said: str = ""


@dataclass(frozen=True)
class Bundle:
    """What is packed: a folder, its files with their sizes in bytes, and what was taken out of them."""

    folder: Path
    steps: tuple[BundleStep, ...]
    files: tuple[tuple[str, int], ...]
    removed: tuple[RemovedText, ...]
    interrupted: bool


def check_target(target: Path) -> None:
    """Raise UsageError where the bundle cannot be written, before anything runs."""
    if target.exists() or target.is_symlink():
        raise UsageError(
            f"{target} is there already", f"--bundle {shlex.quote(str(target.with_name('bundle-2.tar.gz')))}"
        )
    if not target.absolute().parent.is_dir():
        raise UsageError(f"there is no folder {target.absolute().parent}", "--bundle bundle.tar.gz")


def collect(backend: str, folder: Path, progress: Progress) -> Bundle:
    """Run doctor, profile, record and summarize for each backend that works here, into `folder`.

    A step that fails is part of the answer. A Ctrl-C ends the steps: what was done by then is there.
    """
    chain = _Chain(folder, progress)
    interrupted = False
    try:
        chain.run(backend)
    except KeyboardInterrupt:
        interrupted = True
    steps = json.dumps([asdict(step) for step in chain.steps], indent=1, ensure_ascii=False)
    (chain.packed / "steps.json").write_text(steps, encoding="utf-8")
    files = [path for path in sorted(chain.packed.rglob("*")) if path.is_file()]
    sizes = tuple((path.relative_to(chain.packed).as_posix(), path.stat().st_size) for path in files)
    return Bundle(chain.packed, tuple(chain.steps), sizes, chain.redactor.removed(), interrupted)


def pack(bundle: Bundle, target: Path) -> None:
    """Write it, whole or not at all. Raises MachineError where it cannot be written."""
    with (
        writing(target, "--bundle ANOTHER"),
        replacing(target) as whole,
        tarfile.open(whole, "w:gz") as archive,
    ):
        for name, _ in bundle.files:
            archive.add(bundle.folder / name, f"profkit-bundle/{name}", filter=_nobodys)
    chown_to_sudo_user(target)


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


class _Chain:
    """The steps, one after the other. `packed` has what is given away, `_own` what is not."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        self.packed, self._own = folder / "packed", folder / "own"
        for place in (self.packed, self._own):
            place.mkdir()
        self.steps: list[BundleStep] = []
        self.redactor: Redactor = own_redactor()
        self._progress = progress

    def run(self, backend: str) -> None:
        checks = diagnose(backend, self._progress)
        self._keep("doctor.json", documents.checks(checks))
        for name in sorted(backend_names()) if backend == "auto" else [backend]:
            reason = blocking_reason(name, checks)
            if reason is not None:
                self.steps.append(BundleStep(name, "not here", 0.0, self.redactor.text(reason)))
                continue
            program = [sys.executable, str(Path(__file__).with_name("bundle_workload.py")), name]
            self._profile(name, program)
            for tool in backend_named(name).profilers:
                if PROFILERS[tool].recorder is not None:
                    self._record(f"{name}-{tool}", tool, program)

    def _profile(self, name: str, program: list[str]) -> None:
        runs = self._own / name
        try:
            self._step(f"{name} profile", "profile", "--backend", name, "--output", str(runs), "--", *program)
        finally:  # one that was interrupted has what was finished
            self._pack_runs(runs, name)

    def _pack_runs(self, runs: Path, name: str) -> None:
        for run in (path.parent for path in sorted(runs.glob("*/run.json"))):
            try:
                scrub(run, self.packed / name)
            except ProfkitError as fault:
                self.steps.append(
                    BundleStep(f"{name} scrub", "failed", 0.0, self.redactor.text(fault.message))
                )
            # The program is ours: what it prints may be given away.
            for log in sorted((run / "logs").glob("*.log")):
                self._keep(f"{name}/logs/{log.name}", read_start(log, _MAX_BYTES).decode("utf-8", "replace"))

    def _record(self, name: str, tool: str, program: list[str]) -> None:
        report = self._own / name
        self._step(f"{name} record", "record", "--tool", tool, "--report", str(report), "--", *program)
        if report.exists():
            text = self._step(f"{name} summarize", "summarize", "--format", "json", str(report))
            self._keep(f"{name}.json", text)

    def _step(self, name: str, *words: str) -> str:
        """Run a command; what it printed on standard output."""
        self._progress.begin(name)
        begin, printed = time.monotonic(), self._own / "printed"
        ending, said = "interrupted", ""
        try:
            done = process.run(
                profkit_argv(*words),
                cwd=self._own,
                env={"NO_COLOR": "1"},
                timeout=LIMIT,
                tick=self._progress.tick,
                printed=printed,
            )
            ending, said = "done" if done.ok else done.ending(), self.redactor.text(done.output_tail[-4000:])
        finally:
            self._progress.end(ending)
            self.steps.append(BundleStep(name, ending, time.monotonic() - begin, said))
        return read_start(printed, 50 * _MAX_BYTES).decode("utf-8", "replace")

    def _keep(self, name: str, text: str) -> None:
        if not text:
            return
        path = self.packed / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.redactor.text(text), encoding="utf-8")
