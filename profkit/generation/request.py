"""What a generation is asked to do: from the options of a command line to a request that can be run and stored."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from profkit.core.errors import MachineError, UsageError
from profkit.core.types import GenerationLimits
from profkit.generation.prompt import LANGUAGES
from profkit.kernels.devices import choose_device
from profkit.kernels.evaluation.request import SEED_BITS, JudgeSettings, PairOptions, split_list
from profkit.kernels.evaluation.sources.source import SourceRequest

DEFAULT_FOLDER = Path("generated_kernels")
Until = Literal["correct", "faster", "bound"]
UNTIL: tuple[Until, ...] = ("correct", "faster", "bound")
DEPTHS = ("none", "gate", "standard", "full")
_WORDS: Mapping[str, tuple[str, ...]] = {"--language": tuple(LANGUAGES), "--profile-depth": DEPTHS}
MOST_AT_ONCE = 64
COMPARING_SECONDS = 2.0  # of timing a test: attempts are compared, and the last one is measured again


@dataclass(frozen=True)
class GenerationOptions:
    """The options of a new generation, as they were typed: values between commas, empty for the default."""

    suite: str = "smoke"
    traces: Path | None = None  # the suite's own file
    ops: str = ""
    dtype: str = ""
    device: str = "auto"
    gpus: str = ""
    threads: int = 0
    timeout: float = 60.0
    timing: PairOptions = field(default_factory=lambda: PairOptions(COMPARING_SECONDS))
    language: str = ""
    until: str = "bound"
    profile_depth: str = ""
    at_once: int = 4
    limits: GenerationLimits = field(default_factory=GenerationLimits)
    output: Path = DEFAULT_FOLDER
    run_id: str = ""


@dataclass(frozen=True)
class GenerationRequest:
    """A generation that can be run. `settings` are those of the judges; `gpus` the devices that share it.

    `at_once`: operations that are worked on at the same time; each device measures one of them.
    """

    settings: JudgeSettings
    folder: Path
    language: str
    until: Until = "bound"
    profile_depth: str = "standard"
    at_once: int = 4
    limits: GenerationLimits = field(default_factory=GenerationLimits)
    gpus: tuple[str, ...] = ()
    command: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The run id."""
        return self.folder.name


def make_request(options: GenerationOptions, command: tuple[str, ...]) -> GenerationRequest:
    """A new generation; its folder, below `output`, is not made yet.

    Raises UsageError for what makes no sense or a folder that is there, MachineError where there is no such device.
    """
    check_options(options)
    kind, gpus = choose_device(options.device, split_list(options.gpus), "this generation")
    if kind == "mps":
        raise MachineError("kernels are evaluated on the CPU and on GPUs of NVIDIA", "--device cpu")
    settings = JudgeSettings(
        suite=options.suite,
        suite_path=str(options.traces.resolve()) if options.traces else "",
        source=SourceRequest("aten"),
        operations=split_list(options.ops),
        dtype=options.dtype,
        device="cuda:0" if kind == "cuda" else kind,
        describe=True,
        threads=options.threads,
        timeout=options.timeout,
        seed=secrets.randbits(SEED_BITS),
        timing=options.timing,
    )
    folder = options.output / (options.run_id or f"run_{datetime.now():%Y%m%d_%H%M%S}")
    if folder.exists():
        raise UsageError(
            f"{folder} is there already", f"profkit generate --resume {folder}, or another --run-id"
        )
    return GenerationRequest(
        settings,
        folder,
        options.language or _usual_language(kind),
        _read_until(options.until),
        options.profile_depth or ("standard" if kind == "cuda" else "gate"),
        options.at_once,
        options.limits,
        gpus,
        command,
    )


def check_options(options: GenerationOptions) -> None:
    """Raises UsageError for what makes no sense."""
    for option, value in (("--language", options.language), ("--profile-depth", options.profile_depth)):
        if value:
            _check_word(option, value)
    check_limits(options.limits)
    _check_at_once(options.at_once)
    if options.run_id and not re.fullmatch(r"[\w][\w.+-]{0,99}", options.run_id):
        raise UsageError(
            f"--run-id {options.run_id!r} cannot be the name of a folder", "--run-id relu-triton-1"
        )


def check_request(request: GenerationRequest) -> None:
    """Raises UsageError for a request, out of somebody's folder, that no options make."""
    _check_word("--language", request.language)
    _check_word("--profile-depth", request.profile_depth)
    _check_at_once(request.at_once)
    if not all(number.isascii() and number.isdigit() for number in request.gpus):
        raise UsageError(f"gpus {' '.join(request.gpus):.40} are no numbers")


def _check_word(option: str, value: str) -> None:
    known = _WORDS[option]
    if value not in known:
        raise UsageError(f"{option} {value!r} is none of {', '.join(known)}", f"{option} {known[-1]}")


def _check_at_once(number: int) -> None:
    if not 1 <= number <= MOST_AT_ONCE:
        raise UsageError(f"--at-once {number} is not from 1 to {MOST_AT_ONCE}", "--at-once 4")


def check_limits(limits: GenerationLimits) -> None:
    """Raises UsageError for limits that make no sense."""
    if limits.attempts < 1:
        raise UsageError(f"--max-attempts {limits.attempts} leaves nothing to do", "--max-attempts 5")
    if limits.tokens is not None and limits.tokens < 1:
        raise UsageError(f"--max-tokens {limits.tokens} leaves nothing to do", "--max-tokens 200000")
    if limits.cost is not None and not 0 < limits.cost < float("inf"):
        raise UsageError(f"--max-cost {limits.cost:g} leaves nothing to do", "--max-cost 2.50 --prices 3,15")
    if limits.cost is not None and limits.prices is None:
        raise UsageError("--max-cost needs prices", "--prices IN,OUT, of a million tokens: --prices 3,15")


def _read_until(word: str) -> Until:
    for until in UNTIL:
        if until == word:
            return until
    raise UsageError(f"--until {word!r} is none of {', '.join(UNTIL)}", f"--until {UNTIL[-1]}")


def _usual_language(kind: str) -> str:
    """Triton on a GPU; on a processor C++ where it can be compiled."""
    if kind == "cuda":
        return "triton"
    return "cpp" if shutil.which("g++") else "pytorch"


def make_folder(folder: Path) -> None:
    """The folder of a generation. Raises UsageError where it is there already, MachineError where it cannot be made."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        (folder / "logs").mkdir()
    except FileExistsError as error:
        raise UsageError(f"{error.filename} is there already", "--run-id NAME, or --output FOLDER") from error
    except OSError as error:
        raise MachineError(f"{folder} cannot be made: {error.strerror}", "--output FOLDER") from error
