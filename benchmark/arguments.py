"""Build the command line that all workloads share from the fields of the workload."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from benchmark.workload import DTYPES, Workload


@dataclass(frozen=True)
class Request:
    """Hold what the user requested; None where the harness decides."""

    backend: str
    impl: str
    dtype: str | None
    warmup: int | None
    iters: int | None
    sizes: dict[str, int | None]


def parse(kind: type[Workload], script: str, argv: Sequence[str] | None) -> Request:
    """Read the command line. Exits with 2 and a message if it is wrong, with 0 after `--help`."""
    values = vars(_parser(kind, script).parse_args(argv))
    sizes = {each.name: values.pop(each.name) for each in fields(kind)}
    return Request(**values, sizes=sizes)


def _parser(kind: type[Workload], script: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=script,
        description=kind.__doc__,
        epilog=f"example:\n  python {script} -b 8 --backend cpu --iters 20\n"
        f"  profkit profile --backend cpu -- python {script} -b 8 --backend cpu",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    sizes = parser.add_argument_group("sizes")
    for each in fields(kind):
        names = ["-b", "--batch"] if each.name == "batch" else ["--" + each.name.replace("_", "-")]
        cpu, gpu, text = each.metadata["cpu"], each.metadata["gpu"], each.metadata["help"]
        if isinstance(cpu, bool):
            sizes.add_argument(*names, action=argparse.BooleanOptionalAction, default=cpu, help=text)
        else:
            text += f" (default: {cpu})" if cpu == gpu else f" (default: {cpu} on a CPU, {gpu} on a GPU)"
            sizes.add_argument(*names, type=_at_least(1), metavar="N", help=text)
    parser.add_argument(
        "--backend",
        choices=("auto", "cuda", "mps", "cpu"),
        default="auto",
        help="device to run on (default: auto, the first available of cuda, mps and cpu)",
    )
    parser.add_argument(
        "--impl",
        choices=("auto", *kind.implementations),
        default="auto",
        help="which implementation runs (default: auto, torch if it can be imported, else numpy)"
        if "numpy" in kind.implementations
        else "which implementation runs",
    )
    parser.add_argument("--dtype", choices=tuple(DTYPES), help="default: float16 on CUDA, else float32")
    by_hand = parser.add_argument_group("calls, when run by hand (under profkit, the pass decides)")
    by_hand.add_argument(
        "--warmup", type=_at_least(0), metavar="N", help="calls before timing (default: until steady)"
    )
    by_hand.add_argument(
        "--iters", type=_at_least(1), metavar="N", help="timed calls (default: until known to ±1 %%)"
    )
    return parser


def _at_least(least: int) -> Callable[[str], int]:
    """Return a parser of whole numbers; argparse shows the message of its ArgumentTypeError."""

    def whole(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return value

    return whole
