"""torch's MPS: is it built in, does it find a device, and does a switch of the environment change what is measured."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping

from profkit.core.types import Check
from profkit.profilers.trial import attempt

_NAME = "torch on MPS"
# In a process of its own: importing torch takes seconds and much memory.
_ASK = """
import json, warnings
warnings.simplefilter("ignore")
try:
    import torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    print(json.dumps({"version": None}))
else:
    mps = getattr(torch.backends, "mps", None)
    print(json.dumps({
        "version": torch.__version__,
        "built": bool(mps and mps.is_built()),
        "available": bool(mps and mps.is_available()),
    }))
"""
_SECONDS = 120.0  # a first import from a slow disk
_FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"


def mps_torch_checks() -> Iterator[Check]:
    """Ask the Python that a workload typed as `python x.py` runs in, else profkit's own."""
    python = shutil.which("python") or shutil.which("python3") or sys.executable
    trial = attempt([python, "-c", _ASK], seconds=_SECONDS)
    yield judge_mps_torch(trial.output if trial.ok else "", trial.last_line, python)
    yield from switch_checks(os.environ)


def judge_mps_torch(answer: str, last_line: str = "", python: str = "python") -> Check:
    """What torch's answer means; `last_line` is what it printed where it gave none."""
    install = f"{python} -m pip install --upgrade torch"
    told = next((line for line in answer.splitlines()[::-1] if line.startswith("{")), None)
    if told is None:
        detail = f"torch does not start: {last_line[:200]}"
        return Check(_NAME, "refused", detail, f"{python} -m pip install --force-reinstall torch", python)
    data = json.loads(told)
    version = data["version"]
    if version is None:
        return Check(
            _NAME, "missing", "not installed: needed only by workloads written in torch", install, python
        )
    if not data["built"]:
        detail = "a build without MPS, as for Intel: the workload would run on the processor"
        return Check(_NAME, "limited", detail, f"{install}   (in a Python built for arm64)", python, version)
    if not data["available"]:
        detail = (
            "built with MPS, but it finds no device: a macOS before 12.3, a virtual machine, or no Apple GPU"
        )
        fix = f"{python} -c \"import torch; torch.ones(1, device='mps')\"   (says why)"
        return Check(_NAME, "refused", detail, fix, python, version)
    return Check(_NAME, "ok", "built with MPS, and a device is available", path=python, version=version)


def switch_checks(environ: Mapping[str, str]) -> Iterator[Check]:
    """Switches that let a run on the GPU be one on the CPU, in part and in silence."""
    if environ.get(_FALLBACK, "0") not in ("", "0"):
        detail = f"{_FALLBACK} is set: operations that MPS lacks run on the CPU, and are timed as the GPU's"
        yield Check("MPS fallback", "limited", detail, f"unset {_FALLBACK}")
