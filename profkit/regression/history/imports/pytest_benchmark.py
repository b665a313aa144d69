"""What pytest-benchmark writes: `pytest --benchmark-json=FILE`, and the files below .benchmarks/.

Fields as of pytest-benchmark 3 to 5 (`--benchmark-save-data` adds the raw rounds); seconds throughout.
"""

from __future__ import annotations

from collections.abc import Iterator

from profkit.regression.history.imports.node import Node
from profkit.regression.history.imports.result import Measured, Result, times

SOURCE = "pytest-benchmark"


def looks_like(data: Node) -> bool:
    """Told by the two objects that only it writes side by side."""
    return isinstance(data.at("machine_info").data, dict) and isinstance(data.at("benchmarks").data, list)


def read(data: Node) -> Result:
    """The benchmarks of one session; each is a region called by its test's full name."""
    machine, commit = data.at("machine_info"), data.at("commit_info")
    cpu = machine.at("cpu")
    left_out: list[str] = []
    return Result(
        source=SOURCE,
        workload=commit.at("project").text() or SOURCE,
        backend="cpu",
        started=data.at("datetime").text(),
        machine={
            "machine.system": machine.at("system").text(),
            "machine.architecture": machine.at("machine").text(),
            "machine.cpu": cpu.at("brand_raw").text()
            or cpu.at("brand").text()
            or machine.at("processor").text(),
            "machine.cores": cpu.at("count").words(),
            "machine.kernel": machine.at("release").text(),
            "software.python": machine.at("python_version").text(),
        },
        measured=tuple(_measured(data, left_out)),
        commit=commit.at("id").text() if commit.at("id").text() != "unversioned" else None,
        dirty=commit.at("dirty").truth(),
        facts={
            "tools": f"{SOURCE} {data.at('version').text() or ''}".strip(),
            "branch": commit.at("branch").text(),
        },
        left_out=tuple(left_out),
    )


def _measured(data: Node, left_out: list[str]) -> Iterator[Measured]:
    for one in data.at("benchmarks").items():
        name = one.at("fullname").text() or one.at("name").text()
        stats = one.at("stats")
        if name is None:
            left_out.append(f"{one.place} has no name")
            continue
        told = {
            "time.median": stats.at("median").number(),
            "time.mean": stats.at("mean").number(),
            "time.minimum": stats.at("min").number(),
            "time.maximum": stats.at("max").number(),
        }
        found = list(times(name, [stats.at("data").numbers()], told))
        if not found:
            left_out.append(f"{name}: no time was measured")
        yield from found
        for label, extra in one.at("extra_info").fields():
            value = extra.number()
            if value is not None and not isinstance(extra.data, str):
                yield Measured(name, f"extra.{label}", "", "none", value)
