"""Tries the readers with damaged and made-up files: `python -m tests.fuzz --seconds 600 [--target NAME] [--seed N]`.

With atheris (`pip install -e '.[fuzz]'`) inputs that reach new code are kept and changed further: `--guided`. Every
input that fails is made smaller and lies in tests/fuzz/corpus/TARGET afterwards, where the tests read it again.
Ends with 1 where one failed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import os
import sys
import time
from pathlib import Path

from tests.fuzz import guided

CORPUS = Path(__file__).parent / "corpus"


def main() -> int:
    """Spread the time over the targets, and print what came of each."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="for all targets together (default: 600)"
    )
    parser.add_argument("--target", action="append", metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, help="what the changes are drawn with (default: the time)")
    parser.add_argument("--corpus", type=Path, default=CORPUS, help="where inputs that failed are kept")
    parser.add_argument(
        "--guided",
        choices=("auto", "yes", "no"),
        default="auto",
        help="keep inputs that reach new code and change them further (default: where atheris is installed)",
    )
    parser.add_argument("--pool", type=Path, help="where these lie for the next call (default: nowhere)")
    options = parser.parse_args()
    is_guided = options.guided == "yes" or (options.guided == "auto" and guided.is_possible())
    if is_guided:
        try:
            guided.watch_readers()
        except ImportError as error:
            parser.error(f"--guided yes: {error}; pip install -e '.[fuzz]', or --guided no")
    with contextlib.redirect_stderr(io.StringIO()):  # atheris names each module
        from tests.fuzz.targets import TARGETS  # after that: it imports readers
        from tests.fuzz.watch import run_child, shrink

    if unknown := [name for name in options.target or () if name not in TARGETS]:
        parser.error(f"--target: there is no {unknown[0]!r}, only {', '.join(TARGETS)}")
    seed = options.seed if options.seed is not None else int(time.time())
    os.environ.setdefault(
        "OPENBLAS_NUM_THREADS", "1"
    )  # each thread of NumPy's asks for memory that no input needs
    names = options.target or list(TARGETS)
    print(f"seed {seed}, {'guided by what is reached' if is_guided else 'not guided'}", flush=True)
    inputs, failures, start = 0, 0, time.monotonic()
    for number, name in enumerate(names):
        left = options.seconds - (time.monotonic() - start)
        with guided.pool_at(options.pool, name) if is_guided else contextlib.nullcontext() as pool:
            done = run_child(TARGETS[name], left / (len(names) - number), seed, pool)
        inputs += done.inputs
        failures += len(done.failures)
        print(
            f"{name:15} {done.inputs:8} inputs, {done.read:8} read, {done.inputs / max(done.seconds, 1e-9):6.0f}/s, "
            f"{len(done.failures)} failed",
            flush=True,
        )
        for failure, data in done.failures.items():
            path = _keep(options.corpus / name, data)  # first: what is tried here may end this process
            with contextlib.redirect_stderr(io.StringIO()):
                smaller = shrink(TARGETS[name], data, failure)
            if smaller != data:
                path.unlink()
                path = _keep(options.corpus / name, smaller)
            print(f"    {failure}: {path} ({len(smaller)} bytes)", flush=True)
    print(f"{inputs} inputs in {time.monotonic() - start:.0f} s, {failures} failed")
    return 1 if failures else 0


def _keep(folder: Path, data: bytes) -> Path:
    path = folder / hashlib.sha256(data).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


if __name__ == "__main__":
    sys.exit(main())
