"""The Python side of CUDA: does torch have it, does the driver suffice, and is there what names a region's range.

Whether torch and Triton are there at all is told with the other packages (doctor/python.py).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from profkit.core.types import Check
from profkit.profilers.trial import attempt

# In a process of its own: importing torch takes seconds and much memory, and initialising CUDA makes a context.
_ASK = """
import json, torch, warnings
warnings.simplefilter("ignore")
said = None
try:
    torch.cuda.init()
except Exception as error:
    said = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda, "said": said}))
"""
_SECONDS = 120.0  # a first import from a slow disk


def torch_checks() -> Iterator[Check]:
    """torch's CUDA build against the driver, where profkit's Python has a torch; a workload may use another one."""
    if _version("torch") is None:
        return
    trial = attempt([sys.executable, "-c", _ASK], seconds=_SECONDS)
    yield judge_torch(trial.output if trial.ok else "", trial.last_line)


def nvtx_checks() -> Iterator[Check]:
    """One line where profkit's Python has no nvtx; a workload may use another one."""
    if _version("nvtx") is None:
        detail = "not installed: a workload's regions are counted, but nsys and ncu do not show them by name"
        yield Check("nvtx", "missing", detail, f"{_pip()} nvtx")


def judge_torch(answer: str, last_line: str = "") -> Check:
    """What torch's answer means; `last_line` is what it printed where it gave none."""
    told = next((line for line in answer.splitlines()[::-1] if line.startswith("{")), None)
    if told is None:
        return Check(
            "torch on CUDA",
            "refused",
            f"torch does not start: {last_line[:200]}",
            f"{_pip()} --force-reinstall torch",
        )
    data = json.loads(told)
    if data["cuda"] is None:
        detail = "a build without CUDA: the workload would run on the processor"
        return Check(
            "torch on CUDA",
            "limited",
            detail,
            "install the CUDA build: pytorch.org/get-started",
            version=data["version"],
        )
    if data["said"] is None:
        return Check(
            "torch on CUDA",
            "ok",
            f"built for CUDA {data['cuda']}, and the driver serves it",
            version=data["version"],
        )
    said = data["said"]
    if "too old" in said:
        fix = (
            f"a newer driver, or a torch built for an older CUDA than {data['cuda']}: pytorch.org/get-started"
        )
    else:
        fix = "nvidia-smi   (says whether the driver itself works)"
    return Check(
        "torch on CUDA",
        "refused",
        f"built for CUDA {data['cuda']}, but: {said}",
        fix,
        version=data["version"],
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _pip() -> str:
    return f"{sys.executable} -m pip install"
