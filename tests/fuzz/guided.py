"""Inputs that reach new code of a reader are kept and changed further; atheris (libFuzzer) counts what is reached.

The changes are those of `mutate`, the watching is that of `watch`: atheris only chooses what is changed next.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fuzz import mutate

if TYPE_CHECKING:
    from tests.fuzz.watch import Trial

PACKAGE = Path(__file__).parents[2] / "profkit"
# What shows a result is not watched: each new text of a page would count as something new that a reader does.
NOT_READERS = ("cli", "reporting", "hardware", "sweep", "evaluation")
# What reached new code is mostly refused at its first fault, and so are its changes: of the inputs so many are made
# of a seed and of what was read, as without guidance.
FRESH, READ = 0.35, 0.35


def is_possible() -> bool:
    """Whether atheris is installed: it exists for CPython 3.11 to 3.13."""
    return importlib.util.find_spec("atheris") is not None


def modules_without_readers() -> set[str]:
    """The modules that are not watched."""
    return {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for name in NOT_READERS
        for path in (PACKAGE / name).rglob("*.py")
    }


def watch_readers() -> None:
    """Every reader that is imported from now on tells atheris which of its branches it takes. Raises ImportError."""
    import atheris

    # For good: readers are imported where they are first used.
    atheris.instrument_imports(include=["profkit"], exclude=sorted(modules_without_readers())).__enter__()


@contextlib.contextmanager
def pool_at(folder: Path | None, name: str) -> Iterator[Path]:
    """The folder with the inputs of a target that are changed further: inside of `folder`, or for this call only."""
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pool = folder / name
        pool.mkdir(parents=True, exist_ok=True)
        yield pool


def try_inputs(trial: Trial, seed: int, pool: Path) -> None:
    """Change what is in `pool`, and the seeds; what reaches new code is added to `pool`. Ends this process."""
    import atheris

    start = tuple(trial.target.seeds())
    for number, data in enumerate(start):
        (pool / f"seed-{number}").write_bytes(data)

    by, were_read = random.Random(seed), mutate.Pool(start)

    def try_one(data: bytes) -> None:
        if trial.try_one(data):
            were_read.keep(data, by)
        if trial.is_over:  # libFuzzer itself ends by whole seconds, and after all that the pool holds
            trial.say()
            os._exit(0)

    def change(data: bytes, size: int, number: int) -> bytes:
        by = random.Random(number)
        drawn = by.random()
        base = data if drawn > FRESH + READ else by.choice(start if drawn < FRESH else were_read.inputs)
        return (mutate.changed(trial.target.mutate, base, by, start) or b"")[:size]

    options = {
        "seed": seed % 2**32 or 1,
        "max_len": mutate.LARGEST,
        "len_control": 0,  # or it begins with inputs of a few bytes, which are no report
        "mutate_depth": 1,  # `several` makes as many changes as it wants
        "cross_over": 0,
        "reduce_inputs": 1,
        "artifact_prefix": f"{trial.folder}/",  # what ended the process is kept by `watch`
        "timeout": 0,  # time and memory are bounded by `watch`
        "rss_limit_mb": 0,
        "malloc_limit_mb": 0,
        **dict.fromkeys(("handle_int", "handle_term", "handle_abrt", "handle_segv", "handle_xfsz"), 0),
    }
    atheris.Setup(
        ["fuzz", *(f"-{name}={value}" for name, value in options.items()), str(pool)],
        try_one,
        custom_mutator=change,
    )
    atheris.Fuzz()
