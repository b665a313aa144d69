"""Which processor this is, from /proc/cpuinfo: x86 by family and model, Arm by implementer and part."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.hardware import tree

# The features that decide which code path a library takes or which instrument works.
_KEPT = ("sse4_", "avx", "amx", "asimd", "sve")
_KEPT_WHOLE = ("fma", "f16c", "sme", "sme2", "bf16", "i8mm", "fphp", "neon")


@dataclass(frozen=True)
class Processor:
    """One core's identity. On Arm `model` is the part, `stepping` the revision, `vendor` the implementer."""

    name: str
    vendor: str
    family: int | None
    model: int | None
    stepping: int | None
    flags: frozenset[str]

    @property
    def features(self) -> tuple[str, ...]:
        """The flags that matter for speed, in order."""
        return tuple(sorted(flag for flag in self.flags if flag.startswith(_KEPT) or flag in _KEPT_WHOLE))


UNKNOWN = Processor("unknown", "unknown", None, None, None, frozenset())


def read_processor(root: Path = Path("/"), core: int = 0) -> Processor:
    """The identity of `core` (of the first one, where that is not listed); UNKNOWN without /proc/cpuinfo."""
    blocks = [tree.fields(block) for block in (tree.text(root, "proc/cpuinfo") or "").split("\n\n")]
    listed = [block for block in blocks if block]
    if not listed:
        return UNKNOWN
    shared = {name: value for block in listed if "processor" not in block for name, value in block.items()}
    numbered = [block for block in listed if block.get("processor", "").isdigit()]
    chosen = next((block for block in numbered if int(block["processor"]) == core), None)
    return _identify({**shared, **(chosen or (numbered or listed)[0])})


def _identify(block: dict[str, str]) -> Processor:
    flags = frozenset((block.get("flags") or block.get("Features") or "").split())
    if "CPU implementer" in block:
        return _identify_arm(block, flags)
    name = block.get("model name") or block.get("cpu") or block.get("uarch") or block.get("cpu model")
    return Processor(
        name=" ".join((name or "unknown").split()),
        vendor=block.get("vendor_id") or block.get("mvendorid") or "unknown",
        family=_number(block.get("cpu family")),
        model=_number(block.get("model")),
        stepping=_number(block.get("stepping")),
        flags=flags,
    )


def _identify_arm(block: dict[str, str], flags: frozenset[str]) -> Processor:
    implementer, part = _number(block["CPU implementer"]), _number(block.get("CPU part"))
    vendors, parts = arm_names()
    vendor = vendors.get(implementer or -1, f"implementer {block['CPU implementer']}")
    return Processor(
        name=parts.get((implementer or -1, part or -1))
        or f"{vendor} part {block.get('CPU part', 'unknown')}",
        vendor=vendor,
        family=_number(block.get("CPU architecture")),
        model=part,
        stepping=_number(block.get("CPU revision")),
        flags=flags,
    )


@lru_cache
def arm_names() -> tuple[dict[int, str], dict[tuple[int, int], str]]:
    """Implementers by number, and core names by (implementer, part)."""
    table = json.loads((Path(__file__).with_name("arm_cores.json")).read_text("utf-8"))
    vendors = {int(number, 16): str(name) for number, name in table["implementers"].items()}
    parts = {
        (int(number, 16), int(part, 16)): str(name)
        for number, cores in table["parts"].items()
        for part, name in cores.items()
    }
    return vendors, parts


def _number(value: str | None) -> int | None:
    """`26`, `0xd0c`; None where it is no number."""
    try:
        return int(value, 0) if value else None
    except ValueError:
        return None
