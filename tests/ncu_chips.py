"""profkit/profilers/ncu/chips.yaml: which chip lacks which metric, and the replay passes of each counter set.

    python -m tests.ncu_chips LIBNVPERF_HOST.so

writes it, out of NVIDIA's own tables: the library comes with `pip install ncu-report` (folder ncu_report), and answers
for every chip without a GPU or a driver. `python -m tests.ncu_chips LIB --passes CHIP METRIC...` tells the replay
passes of any list. The library's interface for this (NVPW_*) is the one of nvperf_host.h in CUDA's CUPTI.
"""

from __future__ import annotations

import ctypes as c
import re
import sys
from pathlib import Path
from typing import Any

from profkit.analysis.metrics.formulas import formula_table
from profkit.core.tables import load_yaml
from profkit.profilers.ncu.command import _load_sets, metric_alternatives

TABLE = Path(__file__).resolve().parent.parent / "profkit" / "profilers" / "ncu" / "chips.yaml"
# NVIDIA's compute capability of each chip ("CUDA GPUs" on developer.nvidia.com; 11.0 is 10.1 before CUDA 13).
CAPABILITY = {
    "TU1": "7.5",
    "GA100": "8.0",
    "GA10B": "8.7",
    "GA10": "8.6",
    "AD10": "8.9",
    "GH100": "9.0",
    "GB100": "10.0",
    "GB102": "10.0",
    "GB110": "10.3",
    "GB112": "10.3",
    "GB10B": "11.0",
    "GB20B": "12.1",
    "GB20C": "12.1",
    "GB20": "12.0",
}
HEAD = """# Made by `python -m tests.ncu_chips` from NVIDIA's tables (libnvperf_host of {library}); do not edit.
# passes: replay passes of a counter set as that library plans them. ncu itself takes one more where there are several
# (docs/measurements.md has what was recorded); sampling and instruction-level sections come on top.
# lacks, only: base names of metrics (before the first dot), and the chips that do not have them, or alone have them.
library: {library}
"""

Size, Void, Text, Byte = c.c_size_t, c.c_void_p, c.c_char_p, c.c_uint8


class Request(c.Structure):
    _fields_ = (("metric", Size), ("kind", Byte), ("rollup", Byte), ("submetric", c.c_uint16))


class RawRequest(c.Structure):
    _fields_ = (("size", Size), ("private", Void), ("name", Text), ("isolated", Byte), ("keep", Byte))


REQUEST_BYTES = Request.submetric.offset + 2  # without the padding at its end
Names = c.POINTER(Text)
PARAMETERS: dict[str, tuple[tuple[str, Any], ...]] = {
    "InitializeHost": (),
    "GetSupportedChipNames": (("names", Names), ("count", Size)),
    "CUDA_MetricsEvaluator_CalculateScratchBufferSize": (("chip", Text), ("image", Void), ("bytes", Size)),
    "CUDA_MetricsEvaluator_Initialize": (
        *(("buffer", Void), ("bytes", Size), ("chip", Text), ("image", Void)),
        *(("data", Void), ("data_bytes", Size), ("evaluator", Void)),
    ),
    "MetricsEvaluator_ConvertMetricNameToMetricEvalRequest": (
        *(("evaluator", Void), ("name", Text), ("request", c.POINTER(Request)), ("request_bytes", Size)),
    ),
    "MetricsEvaluator_GetMetricTypeAndIndex": (
        *(("evaluator", Void), ("name", Text), ("kind", Byte), ("index", Size)),
    ),
    "MetricsEvaluator_GetMetricRawDependencies": (
        *(("evaluator", Void), ("requests", c.POINTER(Request)), ("count", Size), ("request_bytes", Size)),
        *(
            ("stride", Size),
            ("raw", Names),
            ("raw_count", Size),
            ("optional", Names),
            ("optional_count", Size),
        ),
    ),
    "CUDA_RawMetricsConfig_Create_V2": (("kind", c.c_int), ("chip", Text), ("image", Void), ("config", Void)),
    "RawMetricsConfig_BeginPassGroup": (("config", Void), ("most", Size)),
    "RawMetricsConfig_AddMetrics": (("config", Void), ("requests", c.POINTER(RawRequest)), ("count", Size)),
    "RawMetricsConfig_EndPassGroup": (("config", Void),),
    "RawMetricsConfig_GenerateConfigImage": (("config", Void), ("merge", Byte)),
    "RawMetricsConfig_GetNumPasses": (("config", Void), ("pipelined", Size), ("isolated", Size)),
    "RawMetricsConfig_Destroy": (("config", Void),),
}
PROFILER = 1  # NVPA_ACTIVITY_KIND_PROFILER


class Library:
    """libnvperf_host: each function takes one structure, whose first word is its size without padding."""

    def __init__(self, path: str) -> None:
        self.functions = c.CDLL(path)
        self.call("InitializeHost")

    def call(self, name: str, /, **given: Any) -> Any:
        fields = (("size", Size), ("private", Void), *PARAMETERS[name])
        kind = type(name, (c.Structure,), {"_fields_": fields})
        block: Any = kind(**given)
        last, its_kind = fields[-1]
        block.size = getattr(kind, last).offset + c.sizeof(its_kind)
        status = getattr(self.functions, f"NVPW_{name}")(c.byref(block))
        if status:
            raise LookupError(f"NVPW_{name}: status {status}")
        return block

    def chips(self) -> list[str]:
        told = self.call("GetSupportedChipNames")
        return [told.names[i].decode() for i in range(told.count)]


class Chip:
    """One chip's metrics."""

    def __init__(self, library: Library, name: str) -> None:
        self.library, self.name = library, name.encode()
        size = library.call("CUDA_MetricsEvaluator_CalculateScratchBufferSize", chip=self.name).bytes
        self.buffer = c.create_string_buffer(size)
        self.evaluator = library.call(
            "CUDA_MetricsEvaluator_Initialize", buffer=c.addressof(self.buffer), bytes=size, chip=self.name
        ).evaluator

    def has_base(self, name: str) -> bool:
        return self._answers(
            "MetricsEvaluator_GetMetricTypeAndIndex", evaluator=self.evaluator, name=name.encode()
        )

    def request(self, metric: str) -> Request | None:
        found = Request()
        name = "MetricsEvaluator_ConvertMetricNameToMetricEvalRequest"
        told = self._answers(
            name,
            evaluator=self.evaluator,
            name=metric.encode(),
            request=c.pointer(found),
            request_bytes=REQUEST_BYTES,
        )
        return found if told else None

    def passes(self, metrics: list[str]) -> int:
        """Replay passes for those of the metrics that this chip has."""
        raw = self._raw([r for r in map(self.request, metrics) if r is not None])
        call = self.library.call
        config = call("CUDA_RawMetricsConfig_Create_V2", kind=PROFILER, chip=self.name).config
        try:
            call("RawMetricsConfig_BeginPassGroup", config=config, most=2**64 - 1)
            asked = (RawRequest * len(raw))(
                *(RawRequest(RawRequest.keep.offset + 1, None, name, 1, 1) for name in raw)
            )
            call("RawMetricsConfig_AddMetrics", config=config, requests=asked, count=len(raw))
            call("RawMetricsConfig_EndPassGroup", config=config)
            call("RawMetricsConfig_GenerateConfigImage", config=config)
            told = call("RawMetricsConfig_GetNumPasses", config=config)
            return int(told.pipelined + told.isolated)
        finally:
            call("RawMetricsConfig_Destroy", config=config)

    def _raw(self, requests: list[Request]) -> list[bytes]:
        name = "MetricsEvaluator_GetMetricRawDependencies"
        given = {
            "evaluator": self.evaluator,
            "requests": (Request * len(requests))(*requests),
            "count": len(requests),
            "request_bytes": REQUEST_BYTES,
            "stride": c.sizeof(Request),
        }
        told = self.library.call(name, **given)
        needed, optional = (Text * told.raw_count)(), (Text * told.optional_count)()
        told = self.library.call(
            name, raw=needed, raw_count=len(needed), optional=optional, optional_count=len(optional), **given
        )
        return [*list(needed)[: told.raw_count], *list(optional)[: told.optional_count]]

    def _answers(self, name: str, /, **given: Any) -> bool:
        try:
            self.library.call(name, **given)
        except LookupError:
            return False
        return True


def capability(chip: str) -> str | None:
    """Its compute capability; of several prefixes the longest decides."""
    found = [prefix for prefix in CAPABILITY if chip.startswith(prefix)]
    return CAPABILITY[max(found, key=len)] if found else None


def base_names() -> list[str]:
    """The hardware and instruction counters that sets or formulas name, without their suffixes."""
    wanted = {name for one in _load_sets() for entry in metric_alternatives(one) for name in entry}
    wanted |= {n for ways in formula_table("ncu").formulas.values() for way in ways for n in way.names}
    bases = {name.partition(".")[0] for name in wanted if "." in name}
    return sorted(
        base for base in bases if re.match(r"[a-z0-9]+__", base) and not base.startswith("derived__")
    )


def resolved(chip: Chip, name: str) -> list[str]:
    """The metrics of a set by the names that the chip has."""
    found = []
    for entry in metric_alternatives(name, chip.name.decode()):
        found += [metric for metric in entry if chip.request(metric) is not None][:1]
    return found


def text(library: Library, version: str) -> str:
    """The file as it should be."""
    chips = {name: Chip(library, name) for name in library.chips()}
    lines = [HEAD.format(library=version) + "chips:"]
    for name, chip in sorted(chips.items()):
        passes = ", ".join(f"{one}: {chip.passes(resolved(chip, one))}" for one in _load_sets())
        told = capability(name)
        lines.append(
            f"  {name}: {{{f'capability: {chr(34)}{told}{chr(34)}, ' if told else ''}passes: {{{passes}}}}}"
        )
    sides: dict[str, list[str]] = {"lacks": [], "only": []}
    for base in base_names():
        there = [name for name, chip in sorted(chips.items()) if chip.has_base(base)]
        gone = sorted(chips.keys() - set(there))
        if there and gone:  # a name that no chip has is Nsight Compute's own, and no counter
            side, listed = ("lacks", gone) if len(gone) < len(there) else ("only", there)
            sides[side].append(f"  {base}: [{', '.join(listed)}]")
    for side, rows in sides.items():
        lines += [f"{side}:", *rows]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the table, or tell the passes of a list."""
    library = Library(sys.argv[1])
    if "--passes" in sys.argv:
        chip, *metrics = sys.argv[sys.argv.index("--passes") + 1 :]
        print(Chip(library, chip).passes(metrics))
        return
    site = Path(sys.argv[1]).parent.parent
    version = next((path.name for path in site.glob("ncu_report-*.dist-info")), "an unknown version")
    TABLE.write_text(text(library, version.removesuffix(".dist-info").replace("-", " ")), encoding="utf-8")
    print(f"wrote {TABLE}: {len(load_yaml(TABLE)['chips'])} chips")


if __name__ == "__main__":
    main()
