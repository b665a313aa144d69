"""What is started in every Python process of the workload that finds us in its environment, the first one included.

The stacks are sampled in each; where the workload imports torch, the lines around its calls are written as ranges.
"""

from __future__ import annotations

import atexit
import os
import sys

from .own_library import own_library

TYPE_CHECKING = False  # what every process of the workload loads is kept small
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


def call_after_import(name: str, act: Callable[[ModuleType], None]) -> None:
    """Call `act` with the module once somebody has imported it; an error of `act` is printed and suppressed."""

    class Finder:
        @staticmethod
        def find_spec(
            wanted: str, path: Sequence[str] | None = None, _target: object = None
        ) -> ModuleSpec | None:
            if wanted != name or finder not in sys.meta_path:
                return None
            sys.meta_path.remove(finder)
            # importlib's own look would be one more module, and the workload's where it has one of that name
            finders = list(sys.meta_path)
            spec = next((found for other in finders if (found := other.find_spec(wanted, path))), None)
            loader: Any = spec.loader if spec is not None else None
            if loader is None or not hasattr(loader, "exec_module"):
                return spec
            run = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                run(module)
                try:
                    act(module)
                except Exception as error:
                    print(f"profkit: {name} is not traced: {error}", file=sys.stderr)

            loader.exec_module = exec_module
            return spec

    finder = Finder()
    sys.meta_path.insert(0, finder)


def _call_each(action: str) -> Callable[..., None]:
    def call(self: CombinedSwitch, *arguments: object) -> None:
        for member in self.members:
            method = getattr(member, action, None)
            if method is not None:
                method(*arguments)

    return call


class CombinedSwitch:
    """Combines several instruments into the one switch that `profkit.region` calls."""

    def __init__(self) -> None:
        self.members: list[Any] = []

    enter, exit, iteration = _call_each("enter"), _call_each("exit"), _call_each("iteration")
    prepare, finish = _call_each("prepare"), _call_each("finish")

    def forget(self) -> None:
        """Leave a forked child to each member, whether there is a region or not."""


def start(out: str) -> None:
    """Sample the stacks of this process and of those that it forks, adding to the file `out`."""
    from .stacks import StackSampler

    switches = CombinedSwitch()
    sys.modules[str(__package__)].switch = switches  # type: ignore[attr-defined]
    sampler = StackSampler(out)
    switches.members.append(sampler)

    def join(module: str, name: str, *given: ModuleType) -> None:
        with own_library:
            member = getattr(__import__(f"{__package__}.{module}", fromlist=(name,)), name)(out)
        switches.members.append(member)
        member.start(*given)

    def join_torch(_: ModuleType) -> None:
        traced = "PROFKIT_OPERATIONS" in os.environ  # by another program, which takes ranges
        join(*(("operation_lines", "OperationLines") if traced else ("operation_window", "OperationWindow")))

    call_after_import("torch", join_torch)

    def join_jax(_: ModuleType) -> None:
        join("compilers", "JaxCompiler")
        if "PROFKIT_OPERATIONS" not in os.environ:
            join("device_trace", "XlaWindow")

    call_after_import("jax", join_jax)
    call_after_import("triton.runtime.autotuner", lambda module: join("compilers", "TritonTuner", module))
    call_after_import(
        "torch.utils.data.dataloader", lambda module: join("stacks.loader_workers", "LoaderWorkers", module)
    )
    atexit.register(switches.finish)
    os.register_at_fork(after_in_child=sampler.begin)
    sampler.begin()
