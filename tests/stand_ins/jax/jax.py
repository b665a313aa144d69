"""A stand-in for JAX where there is no GPU: it compiles nothing, and its profiler leaves what was recorded on an H200.

STAND_IN_JAX is one word or more: `old` has no ProfileOptions, `start` and `stop` raise. JAX_TRACE names the trace that
is left; without it there is a trace of no event. JAX_MODULE names the packed text of the module that was compiled.
"""

import gzip
import os
import shutil
import sys
import types

BROKEN = os.environ.get("STAND_IN_JAX", "").split()
EMPTY = (
    b'{"displayTimeUnit":"ns","traceEvents":[{"ph":"M","pid":1,"name":"process_name",'
    b'"args":{"name":"/host:CPU"}}]}'
)
listeners = []
said = []  # what was asked of the profiler, in order


def compile(name, seconds=0.5):
    """What JAX tells its listeners at the end of each compilation."""
    for one in listeners:
        one("/jax/core/compile/backend_compile_duration", seconds, fun_name=name)


def live_arrays():
    return []


def block_until_ready(arrays):
    said.append("wait")


def local_devices():
    return [types.SimpleNamespace(client=types.SimpleNamespace(live_executables=lambda: EXECUTABLES))]


def _executables():
    if not os.environ.get("JAX_MODULE"):
        return []
    with gzip.open(os.environ["JAX_MODULE"], "rt", encoding="utf-8") as file:
        text = file.read()
    module = types.SimpleNamespace(name=text.split(",")[0].split()[1], to_string=lambda: text)
    return [types.SimpleNamespace(hlo_modules=lambda: [module])]


EXECUTABLES = _executables()


class ProfileOptions:
    python_tracer_level = 1


class TraceAnnotation:
    def __init__(self, name):
        self.name = name

    def __enter__(self):
        said.append(f"enter {self.name}")

    def __exit__(self, *_):
        said.append(f"exit {self.name}")


open_now = []


def start_trace(log_dir, profiler_options=None):
    if open_now:
        raise RuntimeError("Profile has already been started. Only one profile may be run at a time.")
    if "start" in BROKEN:
        raise RuntimeError("No GPU tracer")
    level = profiler_options.python_tracer_level if profiler_options is not None else 1
    said.append(f"start {level}")
    open_now.append(log_dir)


def stop_trace():
    if not open_now:
        raise RuntimeError("No profile started")
    folder = os.path.join(open_now.pop(), "plugins", "profile", "2026_11_29_18_57_40")
    said.append("stop")
    if "stop" in BROKEN:
        raise OSError(28, "No space left on device")
    os.makedirs(folder)
    trace = os.path.join(folder, "the-machines-name.trace.json.gz")
    if os.environ.get("JAX_TRACE"):
        shutil.copyfile(os.environ["JAX_TRACE"], trace)
    else:
        with gzip.open(trace, "wb") as file:
            file.write(EMPTY)
    with open(os.path.join(folder, "the-machines-name.xplane.pb"), "wb") as file:
        file.write(b"the-machines-name")


def start_server(port):
    said.append("server")


def _module(name, **values):
    module = types.ModuleType(name)
    vars(module).update(values)
    sys.modules[name] = module
    return module


__path__ = []
profiler = _module(
    "jax.profiler",
    start_trace=start_trace,
    stop_trace=stop_trace,
    start_server=start_server,
    TraceAnnotation=TraceAnnotation,
    **({} if "old" in BROKEN else {"ProfileOptions": ProfileOptions}),
)
monitoring = _module("jax.monitoring", register_event_duration_secs_listener=listeners.append)
