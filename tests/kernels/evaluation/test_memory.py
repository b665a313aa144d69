"""Arguments reach another process as they are; memory of a device by handles, on a driver made of files."""

from __future__ import annotations

import ctypes
import json
import mmap
import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from judging import judge_of, judge_operation

from profkit.kernels.evaluation.candidate import cuda_memory
from profkit.kernels.evaluation.candidate.arguments import Encoder, NotPortable, decode, storage_views
from profkit.kernels.evaluation.candidate.client import KernelProcess
from profkit.kernels.evaluation.candidate.cuda_memory import (
    ABOVE_IDLE,
    BusyDevice,
    CudaJudgeMemory,
    CudaKernelMemory,
    IdleProbe,
    IpcHandle,
    free_blocks,
)
from profkit.kernels.evaluation.candidate.memory import JudgeMemory, KernelMemory
from profkit.runtime.region.cuda import DriverError


def through_arena(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments as the other process makes them."""
    encoder = Encoder()
    recipe = encoder.encode(args, kwargs)
    memory = JudgeMemory(1 << 20)
    (fd,) = memory.inherited
    other = KernelMemory({"fd": os.dup(fd), "size": memory.size})
    for view, content in zip(storage_views(recipe, memory.bytes_at, 4096), encoder.contents, strict=True):
        view.copy_(content)
    return decode(json.loads(json.dumps(recipe.body)), storage_views(recipe, other.bytes_at, 4096))


def test_tensors_keep_their_strides_offsets_dtypes_and_values() -> None:
    base = torch.arange(60.0)
    tensors = (
        base[7:47].view(5, 8)[:, ::2],
        base.view(6, 10).t(),
        torch.tensor(3, dtype=torch.int64),
        torch.zeros(0, 4),
        torch.randn(3, dtype=torch.complex64),
        torch.ones(1, 3).expand(4, 3),
        torch.tensor([True, False]),
    )
    args, _ = through_arena(*tensors)
    for mine, other in zip(tensors, args, strict=True):
        assert torch.equal(mine, other)
        assert (mine.dtype, mine.stride(), mine.storage_offset()) == (
            other.dtype,
            other.stride(),
            other.storage_offset(),
        )


def test_tensors_that_share_memory_share_it_there_too() -> None:
    x = torch.zeros(10)
    (first, second), _ = through_arena(x[:5], x[3:])
    first[4] = 7.0
    assert float(second[1]) == 7.0


def test_values_that_json_has_no_word_for_arrive() -> None:
    args, kwargs = through_arena(
        [torch.ones(2), None],
        float("inf"),
        2 + 1j,
        (1, 2),
        dtype=torch.bfloat16,
        layout=torch.strided,
        device=torch.device("cpu"),
        memory_format=torch.channels_last,
        text="quotes ' \" and <script>",
        flag=True,
    )
    assert torch.equal(args[0][0], torch.ones(2))
    assert args[0][1] is None
    assert args[1:] == (float("inf"), 2 + 1j, [1, 2])
    assert kwargs == {
        "dtype": torch.bfloat16,
        "layout": torch.strided,
        "device": torch.device("cpu"),
        "memory_format": torch.channels_last,
        "text": "quotes ' \" and <script>",
        "flag": True,
    }


@pytest.mark.parametrize(
    "value",
    [torch.zeros(2, 2).to_sparse(), torch.randn(2, dtype=torch.complex64).conj(), object()],
    ids=["sparse", "conjugated", "object"],
)
def test_what_cannot_be_given_to_another_process_is_refused(value: Any) -> None:
    with pytest.raises(NotPortable):
        Encoder().encode((value,), {})


SIZE = 1 << 16


class FileDriver:
    """libcuda in so far as it is used here: an allocation is a file, and each process that opens it maps it anew."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.allocations: dict[int, tuple[int, int]] = {}  # address: descriptor, bytes
        self.opened: dict[int, mmap.mmap] = {}
        self.unshared: set[int] = set()
        self._functions = {
            "cuMemAlloc_v2": self._allocate,
            "cuIpcGetMemHandle": self._make_handle,
            "cuIpcOpenMemHandle_v2": self._open,
            "cuIpcCloseMemHandle": self._close,
            "cuMemGetAddressRange_v2": self._find_range,
        }

    def call(self, name: str, *arguments: Any) -> int:
        """The result: 0, or 1 for what is wrong."""
        function: Any = self._functions.get(name, lambda *_: 0)
        return int(function(*arguments) or 0)

    def check(self, name: str, *arguments: Any) -> None:
        """Raises DriverError."""
        if self.call(name, *arguments):
            raise DriverError(f"{name}: CUDA_ERROR_INVALID_VALUE")

    def _allocate(self, pointer: Any, size: ctypes.c_size_t) -> None:
        descriptor = os.memfd_create("device")
        os.ftruncate(descriptor, size.value)
        pointer._obj.value = self._map(descriptor, size.value)
        self.allocations[pointer._obj.value] = (descriptor, size.value)

    def _make_handle(self, handle: Any, pointer: ctypes.c_uint64) -> int:
        descriptor, size = self.allocations[pointer.value]
        text = f"{descriptor} {size} {pointer.value}".encode().ljust(64)
        ctypes.memmove(ctypes.byref(handle._obj), text, 64)
        return int(pointer.value in self.unshared)

    def _open(self, pointer: Any, handle: IpcHandle, flags: ctypes.c_uint) -> None:
        assert flags.value == 1
        descriptor, size, _ = bytes(handle.reserved).split()
        pointer._obj.value = self._map(int(descriptor), int(size))

    def _close(self, pointer: ctypes.c_uint64) -> None:
        del self.opened[pointer.value]

    def _find_range(self, base: Any, size: Any, address: ctypes.c_uint64) -> int:
        for begin, (_, length) in self.allocations.items():
            if begin <= address.value < begin + length:
                base._obj.value, size._obj.value = begin, length
                return 0
        return 1

    def _map(self, descriptor: int, size: int) -> int:
        mapped = mmap.mmap(descriptor, size)
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        self.opened[address] = mapped
        return address

    def allocate(self, size: int) -> int:
        """Memory that the process of kernels has for itself."""
        pointer = ctypes.c_uint64()
        self.check("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return int(pointer.value)


def idle() -> IdleProbe:
    """A device that is idle always."""
    return IdleProbe(lambda: None)


def tensor_at(address: int, size: int) -> torch.Tensor:
    """The bytes at an address of this process."""
    if not size:
        return torch.empty(0, dtype=torch.uint8)
    return torch.frombuffer((ctypes.c_ubyte * size).from_address(address), dtype=torch.uint8)


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> tuple[FileDriver, CudaJudgeMemory, CudaKernelMemory]:
    driver = FileDriver()
    monkeypatch.setattr(cuda_memory, "tensor_at", tensor_at)
    monkeypatch.setattr(cuda_memory, "DEVICE", torch.device("cpu"))
    monkeypatch.setattr(cuda_memory, "CudaDriver", lambda: driver)
    for name in ("init", "synchronize"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: None)
    judge = CudaJudgeMemory(driver, SIZE, idle())  # type: ignore[arg-type]
    kernels = CudaKernelMemory(judge.describe())
    judge.meet(1, kernels.base)
    return driver, judge, kernels


Both = tuple[FileDriver, CudaJudgeMemory, CudaKernelMemory]


def test_what_the_judge_writes_is_what_the_process_reads_at_its_own_address(both: Both) -> None:
    _, judge, kernels = both
    here, there = judge.bytes_at(512, 8), kernels.bytes_at(512, 8)
    here.copy_(torch.arange(8, dtype=torch.uint8))
    assert torch.equal(here, there)
    assert here.data_ptr() != there.data_ptr()
    assert judge.address_of(here) == (there.data_ptr(), there.data_ptr() + 8)
    assert judge.unknown([there.data_ptr()]) == []
    result = judge.read(there.data_ptr(), 8)
    assert result is not None
    assert torch.equal(result, here)
    here.zero_()
    assert int(result[7]) == 7  # a copy


def test_memory_of_the_process_is_read_by_handles_that_it_has_made_and_are_closed_with_it(both: Both) -> None:
    driver, judge, kernels = both
    own, other, unshared = (driver.allocate(4096) for _ in range(3))
    driver.unshared.add(unshared)
    before = len(driver.opened)
    assert judge.read(own + 16, 8) is None
    assert judge.unknown([own + 16]) == [own + 16]
    assert kernels.export([unshared, 1]) == []
    judge.open([(unshared, 4096, "no handle"), (unshared, 4096, "00")])
    assert judge.unknown([unshared]) == [unshared]
    judge.open(kernels.export([own + 16, own + 32]))
    tensor_at(own + 16, 8).fill_(5)  # after it was opened: the same memory, not a copy of then
    result = judge.read(own + 16, 8)
    assert result is not None
    assert result.tolist() == [5] * 8
    assert judge.read(own + 4090, 8) is None  # beyond it
    ((_, size, handle),) = kernels.export([other])
    tensor_at(other, 1).fill_(9)
    assert judge.open([(own, size, handle)])  # another allocation at the same address
    result = judge.read(own, 1)
    assert result is not None
    assert result.tolist() == [9]
    judge.lose()
    judge.recover()
    assert len(driver.opened) == before
    assert judge.unknown([own]) == [own]


def test_blocks_that_nobody_uses_are_found_in_the_allocators_snapshot() -> None:
    blocks = [{"state": "active_allocated", "size": 512}, {"state": "inactive", "size": 1536}]
    later = [{"state": "inactive", "size": 2048, "address": 9000}]
    snapshot = [{"address": 4096, "blocks": blocks}, {"address": 9000, "blocks": later}]
    assert list(free_blocks(snapshot)) == [(4608, 1536), (9000, 2048)]


class Clock:
    """A clock that `ask` moves by what a device takes for its answer."""

    def __init__(self) -> None:
        self.now, self.answers = 0.0, iter(())

    def ask(self) -> None:
        self.now += next(self.answers, 10e-6)


def probe_of(*answers: float) -> IdleProbe:
    """A probe of a device that answers in 10 us, but its next answers take so many seconds."""
    clock = Clock()
    probe = IdleProbe(clock.ask, lambda: clock.now)
    clock.answers = iter(answers)
    return probe


def test_an_idle_device_is_told_from_one_that_works_and_one_late_judge_changes_nothing() -> None:
    for answers, early in (((), 0), ((3e-3,), 1)):
        probe = probe_of(*answers)
        probe.check()
        assert (probe.checks, probe.early, probe.is_idle) == (1, early, True)
    assert probe.busy_seconds == pytest.approx(10e-6 + ABOVE_IDLE)
    with pytest.raises(BusyDevice, match="stands still"):
        probe_of(*[2e-3] * 10).check()
    assert not probe_of(2e-3, 10e-6, 2e-3, 10e-6, 2e-3).is_idle
    probe_of(2e-3, 2e-3, 10e-6, 2e-3).wait()  # one fast answer between two slices of time is none
    with pytest.raises(BusyDevice, match="more than 5 s"):
        probe_of(*[2e-3] * 10_000).wait()
    assert not probe_of(*[1.0] * 100).recover()
    assert probe_of(*[1.0] * 10).recover()


@pytest.mark.parametrize("opens", [True, False], ids=["opened", "never opened"])
def test_a_kernel_whose_results_cannot_be_read_is_not_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opens: bool
) -> None:
    """On the CPU, where all can be read: here the judge believes that what it has not asked for is closed to it."""
    asked: set[int] = set()
    introduce = KernelProcess.introduce

    def introduced(process: KernelProcess, addresses: Sequence[int]) -> None:
        introduce(process, addresses)
        asked.update(segment(address) for address in addresses if opens)

    def unknown(_: JudgeMemory, addresses: Sequence[int]) -> list[int]:
        return [address for address in addresses if segment(address) not in asked]

    monkeypatch.setattr(JudgeMemory, "unknown", unknown)
    monkeypatch.setattr(KernelProcess, "introduce", introduced)
    with judge_of("cheats.py", tmp_path) as judge:
        result = judge_operation(judge, "abs.default")
    assert result.status == "passed"
    assert (result.speedup is not None) == opens
    assert opens or "its results lie in new memory each time" in result.remarks[-1]


def segment(address: int) -> int:
    """As a device's allocator has segments, of 256 MB here."""
    return address >> 28
