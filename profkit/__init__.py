"""Profile a program on CPU, NVIDIA GPU or Mac and show what slows it down.

A workload imports this module, so it must cost next to nothing: names are loaded when they are first used.
"""

TYPE_CHECKING = False  # what type checkers take for true; importing typing would cost a workload 2 ms

__version__ = "0.1.0"

if TYPE_CHECKING:
    from profkit.fronts.in_process import profile as profile
    from profkit.fronts.notebook import load_ipython_extension as load_ipython_extension
    from profkit.profiling.api import load as load
    from profkit.runtime.passes.benchmark import benchmark as benchmark
    from profkit.runtime.region import region as region

_LAZY = {
    "region": "profkit.runtime.region",
    "benchmark": "profkit.runtime.passes.benchmark",
    "load": "profkit.profiling.api",
    "profile": "profkit.fronts.in_process",
    "load_ipython_extension": "profkit.fronts.notebook",
}


class _TooEarly:
    """A context that does nothing, for a signal handler that runs while the first region is still being imported."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


def _too_early(_name: str) -> _TooEarly:
    return _TooEarly()


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'profkit' has no attribute {name!r}")
    # Not importlib's: a signal handler may come while that is being imported itself.
    if name == "region":  # says itself what it imports, which is next to nothing
        loaded = __import__(module, fromlist=(name,))
    else:
        with __import__("profkit.runtime.passes.host.own_library", fromlist=("own_library",)).own_library:
            loaded = __import__(module, fromlist=(name,))
    if name == "region" and not hasattr(loaded, name):
        return _too_early
    value = getattr(loaded, name)
    globals()[name] = value  # the next look-up is a plain one
    return value
