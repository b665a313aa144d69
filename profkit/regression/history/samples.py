"""Raw samples as bytes in a row: float32, one group per process, thinned where there are very many.

    1 byte   `f` float32, `d` float64 where a sample is beyond what float32 can hold
    u16      number of groups, then u32 the length of each
    ...      the samples of all groups, one after the other; little endian throughout

Four bytes a sample are enough: float32 is exact to 6e-8, and the steadiest clock of a GPU to 1e-4.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

# A run of the full depth takes some thousand samples in ten processes. 2048 tell every quantile to a per mille, and
# at 8 kB a value a year of ten workloads stays below 100 MB.
MOST_SAMPLES = 2048
MOST_GROUPS = 64
LEAST_PER_GROUP = 16
_LARGEST = 3.4028234e38  # of float32
_SMALLEST = 1.2e-38  # below it float32 loses digits
_HEAD = struct.Struct("<cH")
_CODES = {b"f": "f", b"d": "d"}
_MOST_READ = 1 << 20  # samples: what was damaged must not ask for memory without end

Groups = tuple[tuple[float, ...], ...]


def thinned(groups: Sequence[Sequence[float]]) -> tuple[Groups, int | None]:
    """The groups with at most MOST_SAMPLES in all, and how many samples there were where some were left out.

    Every process keeps its share, spread evenly over its samples in the order in which they were taken, so that
    neither the distribution nor a drift is bent.
    """
    numbers = (tuple(sample for sample in group if math.isfinite(sample)) for group in groups)
    kept = [group for group in numbers if group]
    taken = sum(len(group) for group in kept)
    if taken <= MOST_SAMPLES and len(kept) <= MOST_GROUPS:
        return tuple(kept), None
    chosen = [kept[index] for index in _spread(len(kept), MOST_GROUPS)]
    each = max(LEAST_PER_GROUP, MOST_SAMPLES // len(chosen))
    return tuple(tuple(group[index] for index in _spread(len(group), each)) for group in chosen), taken


def packed(groups: Groups) -> bytes | None:
    """The groups as bytes; None where there are none."""
    if not groups:
        return None
    flat = [sample for group in groups for sample in group]
    narrow = all(sample == 0 or _SMALLEST < abs(sample) < _LARGEST for sample in flat)
    code = "f" if narrow else "d"
    lengths = [len(group) for group in groups]
    return struct.pack(f"<cH{len(groups)}I{len(flat)}{code}", code.encode(), len(groups), *lengths, *flat)


def unpacked(blob: bytes | None) -> Groups:
    """The groups behind `packed` bytes. Raises ValueError where the bytes are not what `packed` makes."""
    if blob is None:
        return ()
    try:
        code, count = _HEAD.unpack_from(blob)
        samples, ends = _layout(blob[: _HEAD.size + 4 * count], code, count)
        flat = samples.unpack_from(blob, _HEAD.size + 4 * count)
    except (struct.error, KeyError) as error:
        raise ValueError(f"no packed samples: {error}") from error
    if len(blob) != _HEAD.size + 4 * count + samples.size:
        raise ValueError("no packed samples: the lengths of the groups do not add up")
    return (flat,) if count == 1 else tuple([flat[part] for part in ends])


@lru_cache(maxsize=1024)
def _layout(head: bytes, code: bytes, count: int) -> tuple[struct.Struct, tuple[slice, ...]]:
    """How samples with this head lie: a year of one metric has a few heads at most."""
    lengths = struct.unpack_from(f"<{count}I", head, _HEAD.size)
    ends = list(accumulate(lengths))
    if ends and ends[-1] > _MOST_READ:
        raise ValueError("no packed samples: more than anybody packs")
    samples = struct.Struct(f"<{ends[-1] if ends else 0}{_CODES[code]}")
    return samples, tuple(slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False))


def _spread(count: int, most: int) -> list[int]:
    """At most `most` of the indices 0..count-1, evenly, both ends among them."""
    if count <= most:
        return list(range(count))
    return [round(step * (count - 1) / (most - 1)) for step in range(most)]
