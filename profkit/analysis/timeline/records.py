"""The columns in which a reader hands over what it read, their tables, and a spool to keep them."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from profkit.analysis.necessary_work.calls import OperationCall
from profkit.core.types import Kernel, MemoryKind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Columns: TypeAlias = "NDArray[np.void]"
else:
    Columns: TypeAlias = Any

# One thing that a device did, times in ns. `key` joins it with the call that caused it. `launch` (when that call
# began), `call` (how long it took) and `thread` (which made it) are -1 until `launches.PendingCalls` fills them in, or
# if there is none. `what` is the number of a configuration (kernel) or of a kind of transfer, by `kind`. `stream`
# is -1 where it is not known.
ACTIVITY = [
    ("start", "i8"),
    ("end", "i8"),
    ("key", "i8"),
    ("launch", "i8"),
    ("call", "i8"),
    ("bytes", "i8"),
    ("what", "i4"),
    ("thread", "i4"),
    ("stream", "i4"),
    ("process", "i2"),
    ("device", "i2"),
    ("kind", "i1"),
    ("graph", "?"),
]
# One call of the host into CUDA, times in ns.
CALL = [("start", "i8"), ("end", "i8"), ("key", "i8"), ("name", "i4"), ("thread", "i4"), ("process", "i2")]

KERNEL, TRANSFER, GRAPH = 0, 1, 2  # kinds of activity; GRAPH is a CUDA graph that was traced as a whole
MAX_CONFIGURATIONS = 1 << 17  # kept apart; a trace of more has shapes that never come again
OTHER = "[more launch configurations]"  # all of these share this name


@dataclass(frozen=True)
class TransferKind:
    """A kind of copy, and the memory on the host's side of it where that is recorded."""

    name: str
    memory: MemoryKind | None = None


class Range(NamedTuple):
    """One entry of a marked range, in ns. `end` None: it was still open. `thread` None: it is of the whole process.

    `sequence`: the number that PyTorch's autograd gave an operation, and gives again to its backward pass. `call`: its
    arguments, where more of them was recorded than the name says.
    """

    name: str
    domain: str | None
    start: int
    end: int | None
    process: int
    thread: int | None
    sequence: int | None = None
    call: OperationCall | None = None


@dataclass
class Tables:
    """What the numbers in the columns mean; they grow while the columns are read.

    Configurations that differ only in registers or memory stay apart here.
    """

    configurations: list[Kernel] = field(default_factory=list)
    transfers: list[TransferKind] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)


COMPILATION = "JAX compiles"  # how the host's part is called in which it does


@dataclass(frozen=True)
class Recording:
    """All that a reader knows of a trace. `activities` and `calls` come in blocks, in the order of their starts.

    `profiler` are the times between which the workload had the profiler switched on (cudaProfilerStart to Stop), empty
    where it did not; `captured`: nothing but that was recorded. `operations` are ranges that the tool recorded by
    itself, none of the program's. `compiling` are the times in which the host compiled what it launches later.
    """

    tool: str
    activities: Iterable[Columns]
    calls: Iterable[Columns]
    tables: Tables
    ranges: tuple[Range, ...] = ()
    profiler: tuple[tuple[int, int | None], ...] = ()
    captured: bool = False
    operations: tuple[Range, ...] = ()
    compiling: tuple[tuple[int, int], ...] = ()


def distinct_pairs(first: Any, second: Any) -> tuple[Any, Any, Any, Any]:
    """Return the distinct pairs of two columns of whole numbers from -1 to 2^31, in order.

    Returned are both columns of the pairs, for each row the index of its pair, and how often each pair occurs.
    """
    import numpy as np

    keys = (first.astype(np.int64) << 32) | (second.astype(np.int64) + 1)
    distinct, where, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return distinct >> 32, (distinct & 0xFFFFFFFF) - 1, where.reshape(-1), counts


IN_MEMORY = 8 << 20  # bytes; more goes to the folder for temporary files
BLOCK = 1 << 17  # rows


class Spool:
    """Stores rows of one dtype, and gives them back in blocks in the order in which they were added.

    What exceeds IN_MEMORY bytes goes to a temporary file.
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed by __exit__
        self._dtype: Any = None

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, block: Columns) -> None:
        """Append `block` to the spool."""
        if len(block):
            self._dtype = block.dtype
            self._file.write(block.tobytes())

    def __iter__(self) -> Iterator[Columns]:
        import numpy as np

        self._file.seek(0)
        while self._dtype is not None and (data := self._file.read(BLOCK * self._dtype.itemsize)):
            yield np.frombuffer(data, dtype=self._dtype)


# Rows of ACTIVITY and of CALL.
_ACTIVITY_ROW, _CALL_ROW = struct.Struct("=6q3i2hb?"), struct.Struct("=3q2ih")
_FOLDED = Kernel(OTHER, (0, 0, 0), (0, 0, 0))


@dataclass
class Collected:
    """Collects activities and calls row by row for a reader of texts.

    Times are in ns. `key` joins an activity with its call (-1: none).
    """

    tables: Tables = field(default_factory=Tables)
    devices: set[int] = field(default_factory=set)
    graphs: set[int] = field(default_factory=set)  # keys of launches of CUDA graphs
    kernels: int = 0
    _activities: bytearray = field(default_factory=bytearray)
    _calls: bytearray = field(default_factory=bytearray)
    _numbers: dict[object, int] = field(default_factory=dict)

    def kernel(
        self, what: Kernel, start: int, end: int, *, key: int = -1, device: int = 0, stream: int = -1
    ) -> None:
        """Add one launch of a kernel as the device carried it out, from `start` to `end` in ns."""
        number = self._numbers.get(what)
        if number is None:
            if len(self.tables.configurations) >= MAX_CONFIGURATIONS:
                what = _FOLDED
            number = self._number(what, what, self.tables.configurations)
        self.kernels += 1
        self._activity(KERNEL, number, start, end, key, device, stream, 0)

    def transfer(
        self,
        kind: TransferKind,
        start: int,
        end: int,
        size: int,
        *,
        key: int = -1,
        device: int = 0,
        stream: int = -1,
    ) -> None:
        """Add one copy or memset of `size` bytes, from `start` to `end` in ns."""
        number = self._number(kind, kind, self.tables.transfers)
        self._activity(TRANSFER, number, start, end, key, device, stream, size)

    def call(self, name: str, start: int, end: int, *, key: int = -1, thread: int = 0) -> None:
        """Add one call of the host into CUDA, from `start` to `end` in ns."""
        if "GraphLaunch" in name:
            self.graphs.add(key)
        number = self._number(("call", name), name, self.tables.calls)
        self._calls += _CALL_ROW.pack(start, end, key, number, thread, 0)

    def thread(self, *what: str) -> int:
        """Return the number of the thread that these words identify, the same one each time."""
        return self._numbers.setdefault(("thread", *what), len(self._numbers))

    def _activity(
        self, kind: int, what: int, start: int, end: int, key: int, device: int, stream: int, size: int
    ) -> None:
        device &= 0x7FFF
        self.devices.add(device)
        stream = stream & 0x7FFFFFFF if stream >= 0 else -1
        self._activities += _ACTIVITY_ROW.pack(
            start, end, key, -1, -1, size, what, -1, stream, 0, device, kind, False
        )

    def _number(self, key: object, value: Any, table: list[Any]) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(table)
            table.append(value)
        return number

    def clip_overruns(self) -> int:
        """Clip each kernel that outlasts the next one on its stream; return how many there were.

        It then ends where its successor begins: a stream does one thing after the other. A kernel that ends after its
        successor has an end that its tracer wrote too late, as AMD's does after a stall: whole seconds. Kernels of
        one CUDA graph may have one stream and overlap.
        """
        import numpy as np

        table = np.frombuffer(self._activities, dtype=ACTIVITY)  # a view: what is set here is set there
        rows = np.flatnonzero((table["kind"] == KERNEL) & (table["stream"] >= 0))
        rows = rows[np.lexsort((table["start"][rows], table["stream"][rows], table["device"][rows]))]
        this, following = table[rows[:-1]], table[rows[1:]]
        same = (this["device"] == following["device"]) & (this["stream"] == following["stream"])
        holds = (this["start"] < following["start"]) & (this["end"] > following["end"])
        over = same & holds & (this["key"] != following["key"])
        table["end"][rows[:-1][over]] = following["start"][over]
        return int(over.sum())

    def activities(self) -> Iterator[Columns]:
        """Yield what the devices did in blocks (columns ACTIVITY), in the order of the starts."""
        import numpy as np

        for block in _in_blocks(self._activities, ACTIVITY):
            block["graph"] = np.isin(block["key"], np.array(sorted(self.graphs), dtype=np.int64))
            yield block

    def calls(self) -> Iterator[Columns]:
        """Return the host's calls into CUDA in blocks (columns CALL), in the order of their starts."""
        return _in_blocks(self._calls, CALL)


def _in_blocks(rows: bytearray, dtype: Any) -> Iterator[Columns]:
    import numpy as np

    table = np.frombuffer(rows, dtype=dtype)
    table = table[np.argsort(table["start"], kind="stable")]
    for at in range(0, len(table), BLOCK):
        yield table[at : at + BLOCK]
