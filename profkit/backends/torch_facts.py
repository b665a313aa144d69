"""What torch says of itself in some Python: its version, what it was built for, and whether a device serves it."""

from __future__ import annotations

import json
from typing import Any

from profkit.profilers.programs import try_command

# In a process of its own: importing torch takes seconds and much memory, and initialising CUDA makes a context.
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
    said = None
    try:
        torch.cuda.init()
    except Exception as error:
        said = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
    mps = getattr(torch.backends, "mps", None)
    print(json.dumps({
        "version": torch.__version__,
        "cuda": getattr(getattr(torch, "version", None), "cuda", None),
        "said": said,
        "built": bool(mps and mps.is_built()),
        "available": bool(mps and mps.is_available()),
    }))
"""
_SECONDS = 120.0  # a first import from a slow disk


def ask_torch(python: str) -> dict[str, Any]:
    """Import torch by this Python and ask it; `starts` is whether it answered at all."""
    trial = try_command([python, "-c", _ASK], seconds=_SECONDS)
    return read_torch(trial.output if trial.ok else "", trial.last_line, python)


def read_torch(answer: str, last_line: str, python: str) -> dict[str, Any]:
    """The facts in what was printed; `last_line` is where a torch that does not start says why."""
    line = next((line for line in answer.splitlines()[::-1] if line.startswith("{")), None)
    facts = {"python": python, "last_line": last_line[:200], "starts": line is not None, "version": None}
    return facts if line is None else facts | json.loads(line)
