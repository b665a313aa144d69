"""What hyperfine writes: `--export-json FILE`. Fields as of hyperfine 1.6 to 1.20; seconds throughout."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.regression.history.imports.node import Node
from profkit.regression.history.imports.result import Measured, Result, times

SOURCE = "hyperfine"


def looks_like(data: Node) -> bool:
    """Told by results that each have a command and a mean."""
    first = next(data.at("results").items(), Node(None))
    return first.at("command").text() is not None and first.at("mean").data is not None


def read(data: Node) -> Result:
    """One region per command. It does not say when, on what machine, or of which commit."""
    left_out: list[str] = []
    return Result(SOURCE, SOURCE, "cpu", None, {}, tuple(_measured(data, left_out)), left_out=tuple(left_out))


def _measured(data: Node, left_out: list[str]) -> Iterator[Measured]:
    for one in data.at("results").items():
        name = one.at("command").text()
        if name is None:
            left_out.append(f"{one.place} has no command")
            continue
        codes = sorted({code for code in one.at("exit_codes").numbers() if code != 0})
        failed = f"the command ended with {', '.join(f'{code:.0f}' for code in codes)}" if codes else None
        told = {
            "time.median": one.at("median").number(),
            "time.mean": one.at("mean").number(),
            "time.minimum": one.at("min").number(),
            "time.maximum": one.at("max").number(),
            "time.user": one.at("user").number(),
            "time.system": one.at("system").number(),
        }
        found = list(times(_with_parameters(name, one), [one.at("times").numbers()], told, failed))
        if not found:
            left_out.append(f"{name}: no time was measured")
        yield from found


def _with_parameters(name: str, one: Node) -> str:
    """The command; parameters are in it already, unless it was named."""
    told = [
        f"{key}={value.words()}"
        for key, value in one.at("parameters").fields()
        if value.words() not in (None, "")
    ]
    return (
        f"{name} ({', '.join(told)})"
        if told and not all(str(t).partition("=")[2] in name for t in told)
        else name
    )
