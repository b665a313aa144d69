"""What an unprofiled profkit.region costs, against nvtx.annotate with no tool attached.

Run alone: python tests/performance/region_cost.py
Limit: cheaper than nvtx.annotate, as a context manager and as a decorator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter

import profkit
from profkit.core.statistics import median

LOOPS = 20_000
ROUNDS = 41  # interleaved, so that a busy neighbour meets all of them


def seconds_each(body: Callable[[int], None]) -> float:
    begin = perf_counter()
    body(LOOPS)
    return (perf_counter() - begin) / LOOPS


def empty(loops: int) -> None:
    for _ in range(loops):
        pass


def with_region(loops: int) -> None:
    for _ in range(loops):
        with profkit.region("mlp"):
            pass


@profkit.region("mlp")
def marked() -> None:
    pass


def decorated_region(loops: int) -> None:
    for _ in range(loops):
        marked()


def bodies() -> dict[str, Callable[[int], None]]:
    found: dict[str, Callable[[int], None]] = {
        "empty loop": empty,
        "with profkit.region": with_region,
        "@profkit.region": decorated_region,
    }
    try:
        import nvtx
    except ImportError:
        print("nvtx is not installed: nothing to compare with")
        return found

    def with_nvtx(loops: int) -> None:
        for _ in range(loops):
            with nvtx.annotate("mlp"):
                pass

    @nvtx.annotate("mlp")
    def annotated() -> None:
        pass

    def decorated_nvtx(loops: int) -> None:
        for _ in range(loops):
            annotated()

    return {**found, "with nvtx.annotate": with_nvtx, "@nvtx.annotate": decorated_nvtx}


def main() -> int:
    timed: dict[str, list[float]] = {name: [] for name in bodies()}
    for _ in range(ROUNDS):
        for name, body in bodies().items():
            timed[name].append(seconds_each(body))
    cost = {name: median(times) for name, times in timed.items()}
    for name, value in cost.items():
        print(f"{name:22} {value * 1e9:7.0f} ns")
    if "with nvtx.annotate" not in cost:
        return 0
    good = cost["with profkit.region"] < cost["with nvtx.annotate"]
    # Both hand the function back as it is, so these are two readings of one number: a tenth apart is the clock's.
    good = good and cost["@profkit.region"] < 1.1 * cost["@nvtx.annotate"]
    print("held" if good else "MISSED: a region costs more than nvtx.annotate")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
