"""A GPU, its kernels, and the trace of what it did; of an Apple GPU what Instruments saw of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profkit.core.types.readings import Bound, Fact, Scope
from profkit.core.types.timeline import Timeline


@dataclass(frozen=True)
class Gpu:
    """One device. A field that is None is not known."""

    name: str
    index: int = 0
    capability: str | None = None  # compute capability: "9.0"
    chip: str | None = None  # "GH100"
    multiprocessors: int | None = None
    memory_bytes: int | None = None
    l2_bytes: int | None = None
    bandwidth: float | None = None  # peak DRAM bytes/s by clock and bus width
    driver: str | None = None  # "580.159.04"
    mig: bool | None = None
    virtual: str | None = None  # "wsl", "vgpu", where it is
    power_limit: float | None = None  # W, as enforced
    clock_lock: float | None = None  # Hz that the SMs are set to (application clocks), where below the most
    cores: int | None = None  # GPU cores, as Apple counts them
    highest_clock: float | None = None  # Hz, the most that the SMs can have


@dataclass(frozen=True)
class Kernel:
    """One launch configuration: what is launched, in which shape; an encoder of Metal has a name alone."""

    name: str  # demangled, whole
    grid: tuple[int, ...]  # blocks (x, y, z)
    block: tuple[int, ...]  # threads
    mangled: str | None = None
    registers: int | None = None  # per thread
    shared: int | None = None  # bytes per block, static and dynamic
    instruction: str | None = None  # of a program of XLA, where the trace tells it: `jit_step/psum.2`

    @property
    def id(self) -> str:
        """Return `132x1x1 of 384x1x1`, which tells configurations of a kernel apart; empty if no shape is known."""
        if not self.grid and not self.block:
            return ""
        return f"{'x'.join(map(str, self.grid))} of {'x'.join(map(str, self.block))}"

    @property
    def scope(self) -> Scope:
        """Return the scope of everything that is said of this configuration."""
        return Scope("kernel", self.name, self.id or None)


@dataclass(frozen=True)
class KernelTime:
    """All launches of one configuration in a trace. Times in seconds; `first` counts launches from 0."""

    kernel: Kernel
    launches: int
    total: float
    median: float | None = None
    least: float | None = None
    most: float | None = None
    first: int | None = None
    ranges: tuple[str, ...] = ()  # the regions (NVTX ranges) it was launched in
    setup_launches: int = 0  # further launches before what repeats, not counted above
    graph: bool = False  # launched by a CUDA graph
    operation: str | None = None  # that launched it most often: `aten::mm [4096,768] x [768,50257]`
    operation_launches: int = 0
    operations: int = 0  # different ones
    backward_of: str | None = None  # the forward operation whose backward pass that operation is a part of
    # Of the line that launched most of it (in a backward pass, its forward operation).
    file: str | None = None
    line: int | None = None
    function: str | None = None
    # of one launch on average, by the shapes; of matrix products, attention and convolutions alone
    flops: float | None = None
    # That launched it most often, whatever the operation: `launches` alone are told; of programs of XLA also how long
    # those took, and by which operation, of which a line has several.
    lines: tuple[GpuLine, ...] = ()


# What arithmetic runs on at best: matrix units (tensor cores), the pipes for multiply-adds of single numbers; `memory`:
# there is none to speak of.
WorkUnit = Literal["tensor", "fma", "memory"]


@dataclass(frozen=True)
class SourcePlace:
    """A line of source, in a function where that is known."""

    file: str
    line: int
    function: str | None = None


@dataclass(frozen=True)
class GpuOperation:
    """One operation of a framework with its shapes, as one line calls it, in the part that counts.

    Times in seconds. `flop` and `bytes` are the least that one call needs, by the shapes and types of its
    arguments; None if unknown. What operations inside of it launch is counted as theirs. Measured in the run that
    recorded operations: use its shares.
    """

    operation: str  # `aten::mm [4096,768] x [768,50257]`
    calls: int  # those that launched kernels
    launches: int
    seconds: float  # of its kernels
    kernel: str  # the one with most of that time
    type: str | None = None  # of its operands: "bf16"
    unit: WorkUnit | None = None  # None: its work is not known
    flop: float | None = None
    bytes: float | None = None
    backward_of: str | None = None  # the forward operation whose backward pass it is a part of
    file: str | None = None  # of the line; in a backward pass, of its forward operation
    line: int | None = None
    function: str | None = None
    below: SourcePlace | None = None  # the line of a library to which that one leads
    typed: bool = False  # the types of its operands were recorded; else the name of a kernel tells `type`


MemoryKind = Literal["pageable", "pinned", "managed"]


@dataclass(frozen=True)
class Transfer:
    """Copies (or memsets) of one kind: "host to device", "device to device", "memset"."""

    kind: str
    count: int
    bytes: int
    seconds: float
    # Those whose host side is memory of one kind (a MemoryKind), most time first
    memory: tuple[Transfer, ...] = ()


@dataclass(frozen=True)
class ApiCall:
    """A call of the host: a function of the CUDA API, or a framework's operation, `aten::normal_ [64,3,256,256]`."""

    name: str
    calls: int
    seconds: float


@dataclass(frozen=True)
class GpuLine:
    """What one line of the program did for the devices in the part that counts.

    A backward pass has its forward line. `calls` of torch and their seconds on the host; `waits`: calls that wait
    for the device, without those that only belong to a copy to it; `on_host`: the operation with most time that
    the host computes itself; `rows`: of its matrix products with the same weights, where each has more rows than
    the one before, by the same number: of the first, of the last, and how many. Measured in the run that recorded
    lines: its times are longer. `operation`: of a kernel's lines, where each launches it by an operation of its
    own (with shapes), and whether that is of a backward pass.
    """

    file: str
    line: int
    function: str | None = None
    calls: int = 0
    seconds: float = 0.0
    launches: int = 0
    kernel_seconds: float = 0.0
    waits: int = 0
    transfers: tuple[Transfer, ...] = ()
    on_host: ApiCall | None = None
    rows: tuple[int, int, int] | None = None
    call: str | None = None  # of the CUDA API, or malloc in a kernel, that a source has there
    operation: str | None = None
    backward: bool = False


@dataclass(frozen=True)
class GpuRange:
    """All entries of one NVTX range (or region), by name."""

    name: str
    domain: str | None
    entries: int
    seconds: float  # wall time inside
    kernels: int  # launched inside
    gpu_seconds: float  # their time
    operation: bool = False  # nobody marked it: a framework writes one for each of its operations


@dataclass(frozen=True)
class DeviceCommunication:
    """Kernels of NCCL on one device, in seconds; the fields are those of Communication."""

    device: int
    seconds: float
    exposed: float
    waiting: float | None


@dataclass(frozen=True)
class Communication:
    """Kernels of NCCL: means over the devices that ran any, in seconds."""

    seconds: float
    exposed: float  # no other kernel ran
    waiting: float | None  # in which another device had not begun the same call; None: calls cannot be paired
    calls: int  # of one device
    kernel: str  # the one with most time
    devices: int
    by_device: tuple[DeviceCommunication, ...] = ()


@dataclass(frozen=True)
class HostPauses:
    """The stretches of over 1 ms in which a device was idle and the host had launched nothing. Times in seconds."""

    count: int  # of several devices, of the one with most
    seconds: float  # in all, of several devices the mean
    median: float
    after_copies: float = 0.0  # of `seconds`, those that begin when a copy of 1 MB or more to the host ends


@dataclass(frozen=True)
class GpuLoop:
    """A loop of an unmarked program beside the one that counts, as an evaluation after the training."""

    repeats: int
    seconds: float  # from the begin of its first kernel to the end of its last
    before: bool  # it was over before the loop that counts began; else it came after it


@dataclass(frozen=True)
class HoldingCall:
    """Calls by one name, of the thread that launches, that take the host long or wait, and launch nothing.

    Times in seconds; of several devices, their mean. A call that is made within another one counts once.
    """

    name: str
    calls: int
    later: int  # of these, in the second half of what counts
    starving: float  # in them the device had nothing launched: it waited for the host
    paused: float = 0.0  # of that, in pauses


@dataclass(frozen=True)
class StreamOrder:
    """How kernels of several streams follow each other on a device, without its default stream. Times in seconds."""

    streams: int  # that ran kernels
    seconds: float  # of their kernels together,
    longest: float  # and of the stream with most of it
    overlap: float  # of that sum, what ran while a kernel of another stream did
    switches: int  # kernels that began behind one of another stream
    parted: int  # of these, with an operation of the default stream between the two
    queued: int  # of the parted ones, those that were launched before the kernel in front of them ended
    blocks: float  # of a kernel, weighted with its time
    kernel: str  # with most of the time
    operation: str  # of the default stream the most frequent: a kind of copy, or the name of a kernel
    operations: int = 0  # how often that came


@dataclass(frozen=True)
class GpuTrace:
    """What the devices did in the part that counts. Times in seconds; for several devices, their mean.

    A report of counters alone has only `kernels`, with the times that were counted.
    """

    tool: str
    kernels: tuple[KernelTime, ...]  # largest total first
    span: float | None = None  # from the begin of the region (or of its first activity) to its end
    busy: float | None = None  # the union of all kernels and copies in it
    launches: int = 0
    transfers: tuple[Transfer, ...] = ()
    ranges: tuple[GpuRange, ...] = ()
    api: tuple[ApiCall, ...] = ()
    launch_latency: float | None = None  # median, from the begin of a launch call to that of its kernel
    launch_call: float | None = None  # median time of a launch call on the host
    # Share of the idle time in which the host had launched nothing: the device waited for the host.
    starved: float | None = None
    largest_gap: float | None = None
    pauses: HostPauses | None = None  # of the time that is starved
    # Longest first. Empty where launches are not known, or several processes make them.
    holding: tuple[HoldingCall, ...] = ()
    copying: float | None = None  # part of `busy` in which copies or memsets ran, and no kernel
    # Of several devices the share of its span (0..1) in which each was busy, by its number; empty of one alone.
    device_busy: tuple[float, ...] = ()
    marked: bool = False  # only what happened in a marked region is counted
    repeats: int | None = None  # unmarked: how often what repeats was seen; None where nothing does
    loops: tuple[GpuLoop, ...] = ()  # that are no part of it, longest device time first
    setup_seconds: float | None = None  # kernel time before it, left out
    # Seconds that the program went on after the window in which it was traced; None: it was traced to its end.
    untraced: float | None = None
    # Which of `kernels` the first launches that count were, in order: some thousand. Empty where a tool tells no order.
    order: tuple[int, ...] = ()
    setup: tuple[KernelTime, ...] = ()  # launched only before what counts: `setup_launches` times
    communication: Communication | None = None
    streams: StreamOrder | None = None  # None: fewer than two streams ran kernels beside the default one
    operations: int = 0  # that a framework wrote as ranges: each costs the host some microseconds
    lines: tuple[GpuLine, ...] = ()  # most time of the device first
    work: tuple[GpuOperation, ...] = ()  # most time first: some hundred
    line_span: float | None = None  # seconds of the part that counts in which lines were recorded,
    lines_of: float | None = None  # and seconds of that part in the run that recorded them
    # Of one typical step; None: the report tells no times of single launches.
    timeline: Timeline | None = None


@dataclass(frozen=True)
class GpuToolLines:
    """Commands that record what a report lacks, as the backend's tools are called.

    Empty: the backend has no such tool.
    """

    trace: str = ""  # a timeline
    count: str = ""  # counters of its kernels
    count_all: str = ""  # counters that were left out
    count_other: str = ""  # counters of another kernel


@dataclass(frozen=True)
class KernelInstruction:
    """One machine instruction of a kernel, and its source where that is known. Shares are of the kernel's totals."""

    kernel: Scope
    offset: int  # bytes from the kernel's begin
    text: str | None  # a memory access: `LDG.128`
    file: str | None
    line: int | None
    samples: float  # of the samples in which a warp waited there
    excess_sectors: float  # of the sectors that global accesses move and nobody asked for
    conflicts: float  # of the passes through shared memory that only conflicts need
    stall: str | None = None  # what warps wait for there most
    # Of all accesses of the kernel to local memory that were executed, the share at fixed places of the stack, as those
    # of spilled registers are. An array with an index that is computed has its address in another register. None: its
    # code is not known, or it has no such accesses.
    fixed_local: float | None = None


@dataclass(frozen=True)
class ToolRule:
    """What a rule of NVIDIA's Nsight Compute concluded about a kernel, as the report holds it."""

    kernel: Scope
    name: str
    title: str
    text: str
    speedup: float  # its estimate, a share (0..1) of
    whole: bool  # the kernel's time; else of a part of it alone


@dataclass(frozen=True)
class KernelBottleneck:
    """What limits one launch configuration, with the reason. `share` is of the region's GPU time, 0..1."""

    scope: Scope
    share: float | None
    bound: Bound
    reason: Fact
    nearest: float | None = None  # how near its busiest unit is to its peak, in %, and
    busiest: Bound | None = None  # which unit that is; `bound` itself where that is a unit


@dataclass(frozen=True)
class MetalWork:
    """All work of one name on the GPU by the profiled process. `seconds` adds up what may run side by side."""

    name: str
    count: int
    seconds: float
    median: float | None = None
    longest: float | None = None


@dataclass(frozen=True)
class MetalCounter:
    """One counter of the GPU over the part that counts; it is of the whole device, not of a process."""

    name: str
    unit: str  # as the table's own label says it, in base units; "" where it says none
    mean: float  # weighted by how long each sample held
    least: float
    most: float
    samples: int
    active: float | None = None  # mean over the samples in which the process had work; None: not told when
    filled: float | None = None  # share of those samples' time in which it had: the rest is in `active`


@dataclass(frozen=True)
class MetalAbsent:
    """Something that the trace does not contain: the schema of its table, the reason, and the way to get it."""

    what: str
    reason: Fact
    fix: str | None = None


@dataclass(frozen=True)
class MetalTrace:
    """A Metal System Trace, restricted to the part that counts. Times in seconds; None: not in the trace."""

    span: float | None = None
    device_busy: float | None = None  # union of the device's Active intervals, whoever caused them
    process_busy: float | None = None  # of the intervals of the process that was profiled
    others: float | None = None  # that process had nothing on the GPU while somebody else had
    longest_gap: float | None = None  # in the window, in which the process had nothing on the GPU
    encoders: tuple[MetalWork, ...] = ()  # largest first
    buffers: int | None = None  # command buffers of the process
    frame: float | None = None  # median from one frame that the process presents to the next
    displayed: float | None = None  # median time that a frame stayed on the screen, whoever drew it
    compiling: float | None = None  # Metal's compiler worked for the process, in all of the recording
    compilations: int | None = None  # how often
    shaders: tuple[MetalWork, ...] = ()  # timed ones, largest first
    shader_names: tuple[str, ...] = ()  # of those that were compiled for the process, in all of the recording
    counters: tuple[MetalCounter, ...] = ()
    absent: tuple[MetalAbsent, ...] = ()
    marked: bool = False  # only what happened in a marked region is counted
    entries: int = 0  # of the region
    window: float | None = None  # from the first submission of the process to its last; marked: the span
    unsubmitted: float | None = None  # in the window: all was done that the host had submitted
    blocked: float | None = None  # in the window: something was submitted, and somebody else had the GPU
    device: str | None = None  # the GPU that all of this speaks of: the one that the process used most
    guessed: Fact | None = None  # why the process that counts may be another than was profiled
    lost: Fact | None = None  # why all of the trace counts, although a region was marked
