"""What an evaluation on a GPU takes for granted of the driver, each fact tried: two processes, no kernel of anybody.

    python -m tests.performance.evaluation_gpu_facts

Needs a CUDA device. Prints a line for each fact, `ok` or `WRONG` first, and what was measured. The parent is a judge:
nobody may look into it; the child is confined as candidates are. Facts: an interprocess handle reaches the child, what
one writes the other reads, memory of the child is read while it stands still, a tiny piece of work waits for the work
of the child and for nothing else, a child that is killed inside of a kernel leaves an idle device soon.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from profkit.kernels.evaluation.candidate.arguments import ALIGNMENT
from profkit.kernels.evaluation.candidate.confinement import GPU_CACHES, confine, make_caches, shield
from profkit.kernels.evaluation.candidate.cuda_memory import CudaJudgeMemory, CudaKernelMemory, free_blocks
from profkit.kernels.evaluation.candidate.devices import BusyDevice, CudaDevice, IdleProbe
from profkit.runtime.region.cuda import CudaDriver

ROOT = Path(__file__).resolve().parents[2]
SPIN_PER_MS = 1_700_000  # cycles, roughly: torch.cuda._sleep counts them
SLOW = 1e-3


class Child:
    """The other process: lines of JSON in, lines of JSON out."""

    def __init__(self, description: Any, *, confined: bool = True) -> None:
        description = {**description, "confined": confined}
        argv = [sys.executable, "-m", "tests.performance.evaluation_gpu_facts", json.dumps(description)]
        self.begin = time.perf_counter()
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def ask(self, what: str, **values: Any) -> Any:
        """Its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"what": what, **values}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the child ended with {self.process.wait()}; its last words are above")
        return json.loads(line)

    def signal(self, number: int) -> None:
        """Stop it, wake it, end it."""
        os.kill(self.process.pid, number)


def serve(description: Any) -> None:
    """Be the child."""
    if description.pop("confined"):
        make_caches(GPU_CACHES)
        confine([str(ROOT)], [Path("/work-of-nobody")])
    begin = time.perf_counter()
    memory = CudaKernelMemory(description)
    kept: list[torch.Tensor] = []
    small = torch.ones(1 << 26, device="cuda")  # longer than a launch takes: a queue builds up
    matrix = torch.randn(4096, 4096, device="cuda")
    for line in sys.stdin:
        request = json.loads(line)
        answer: Any = None
        match request["what"]:
            case "begin":
                answer = {"base": memory.base, "seconds": time.perf_counter() - begin}
            case "read":
                answer = memory.bytes_at(request["offset"], 8).tolist()
            case "write":
                memory.bytes_at(request["offset"], 8).fill_(request["value"])
                memory.wait()
            case "allocate":
                kept.append(torch.full((request["bytes"],), 7, dtype=torch.uint8, device="cuda"))
                memory.wait()
                address = kept[-1].data_ptr()
                answer = {"address": address, "segments": memory.export([address])}
                answer["same"] = memory.export([address]) == answer["segments"]
            case "spin":  # one long kernel; not waited for
                torch.cuda._sleep(int(request["ms"] * SPIN_PER_MS))
            case "many":  # many short kernels
                for _ in range(request["count"]):
                    small.add_(1)
            case "products":
                for _ in range(request["count"]):
                    matrix @ matrix
            case "side":  # on a stream of its own
                with torch.cuda.stream(torch.cuda.Stream()):
                    torch.cuda._sleep(int(request["ms"] * SPIN_PER_MS))
            case "wait":
                start = time.perf_counter()
                memory.wait()
                answer = time.perf_counter() - start
            case "free":
                kept.clear()
                free = list(free_blocks(torch.cuda.memory_snapshot()))
                with memory.fill_new(filled=True):
                    fresh = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
                answer = {
                    "blocks": len(free),
                    "bytes": sum(size for _, size in free),
                    "first": fresh[:4].tolist(),
                }
            case "illegal":
                try:
                    torch.as_tensor(_Bad(), device="cuda").add_(1)
                    memory.wait()
                except Exception as error:
                    answer = {"error": str(error).splitlines()[0], "failed": memory.has_failed()}
        print(json.dumps(answer), flush=True)


class _Bad:
    """An address that nobody has."""

    def __init__(self) -> None:
        good = torch.zeros(1, device="cuda")
        self.__cuda_array_interface__ = {
            "shape": (1 << 34,),  # far beyond its end
            "typestr": "|u1",
            "data": (good.data_ptr(), False),
            "strides": None,
            "version": 3,
        }


def fact(name: str, look: Callable[[], tuple[bool, str]]) -> bool:
    """Whether it is so, which is printed."""
    try:
        right, found = look()
    except Exception as error:
        traceback.print_exc()
        right, found = False, f"{type(error).__name__}: {error}"
    print(f"{'ok   ' if right else 'WRONG'} {name}: {found}", flush=True)
    return right


def main() -> None:
    """Try all facts."""
    shielded = "open" not in os.environ.get("FACTS", "")
    if shielded:
        shield()
    device = CudaDevice()
    probe: IdleProbe = device._probe
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, kernel {os.uname().release}")
    memory = device.make_memory()
    assert isinstance(memory, CudaJudgeMemory)
    confined = "free" not in os.environ.get("FACTS", "")
    child = Child(memory.describe(), confined=confined)
    print(
        f"the parent is {'shielded' if shielded else 'open'}, the child {'confined' if confined else 'free'}"
    )

    def begin() -> tuple[bool, str]:
        answer = child.ask("begin")
        memory.meet(child.process.pid, answer["base"])
        return (
            True,
            f"{time.perf_counter() - child.begin:.1f} s from its start, {answer['seconds']:.1f} s of them CUDA",
        )

    def shared() -> tuple[bool, str]:
        memory.bytes_at(512, 8).copy_(torch.arange(8, dtype=torch.uint8, device="cuda"))
        memory.settle()
        there = child.ask("read", offset=512)
        child.ask("write", offset=ALIGNMENT, value=9)
        back = memory.bytes_at(ALIGNMENT, 8).tolist()
        return there == list(range(8)) and back == [9] * 8, f"{there}, {back}, {memory.size / 1e9:.1f} GB"

    def own_memory() -> tuple[bool, str]:
        right, times = True, []
        for size in (1 << 10, 1 << 21, 1 << 26):
            answer = child.ask("allocate", bytes=size)
            start = time.perf_counter()
            memory.open([tuple(each) for each in answer["segments"]])
            times.append(time.perf_counter() - start)
            child.signal(signal.SIGSTOP)
            found = memory.read(answer["address"], size)
            right &= found is not None and bool((found == 7).all()) and bool(answer["same"])
            child.signal(signal.SIGCONT)
        return right, "opened in " + ", ".join(f"{each * 1e3:.2f} ms" for each in times)

    def idle(what: str, *, stopped: bool, **values: Any) -> Callable[[], tuple[bool, str]]:
        def look() -> tuple[bool, str]:
            child.ask(what, **values)
            if stopped:
                child.signal(signal.SIGSTOP)
            start = time.perf_counter()
            answers = []
            while time.perf_counter() - start < 0.06:
                answers.append(probe._answer_seconds())
            if stopped:
                child.signal(signal.SIGCONT)
            child.ask("wait")
            slow = sum(each > probe.busy_seconds for each in answers)
            words = ", ".join(f"{each * 1e6:.0f}" for each in answers[:12])
            return min(
                answers[:3]
            ) > probe.busy_seconds, f"{slow} of {len(answers)} slow; first in us: {words}"

        return look

    def waits() -> tuple[bool, str]:
        child.ask("spin", ms=100)
        child.signal(signal.SIGSTOP)
        start = time.perf_counter()
        before = probe.overruns
        probe.wait()
        seconds = time.perf_counter() - start
        child.signal(signal.SIGCONT)
        rest = child.ask("wait")
        return (
            rest < 2e-3 and probe.overruns == before + 1,
            f"waited {seconds * 1e3:.1f} ms; {rest * 1e3:.2f} ms were left",
        )

    def quiet() -> tuple[bool, str]:
        times = sorted(probe._answer_seconds() for _ in range(2000))
        child.signal(signal.SIGSTOP)
        beside = sorted(probe._answer_seconds() for _ in range(2000))
        child.signal(signal.SIGCONT)
        late = sum(each > probe.busy_seconds for each in beside)
        text = f"median {median(beside) * 1e6:.1f} us, 99 % {beside[1980] * 1e6:.1f}, most {beside[-1] * 1e6:.0f}"
        return (
            late < 20,
            f"{text}; alone {median(times) * 1e6:.1f}; limit {probe.busy_seconds * 1e6:.0f}; {late} late",
        )

    def switching() -> tuple[bool, str]:
        times = []
        for _ in range(50):
            memory.settle()
            start = time.perf_counter()
            child.ask("many", count=1)
            child.ask("wait")
            probe.wait()
            times.append(time.perf_counter() - start)
        return median(times) < SLOW, f"median {median(times) * 1e6:.0f} us, least {min(times) * 1e6:.0f} us"

    def poison() -> tuple[bool, str]:
        answer = child.ask("free")
        return answer["first"] == [0xFE] * 4, str(answer)

    def illegal() -> tuple[bool, str]:
        answer = child.ask("illegal")
        torch.cuda.synchronize()
        return bool(answer["failed"]), str(answer)

    def killed() -> tuple[bool, str]:
        child.signal(signal.SIGKILL)
        child.process.wait()
        other = Child(memory.describe(), confined=confined)
        memory.lose()
        memory.meet(other.process.pid, other.ask("begin")["base"])
        other.ask("spin", ms=60_000)
        other.signal(signal.SIGKILL)
        start = time.perf_counter()
        other.process.wait()
        ended = time.perf_counter() - start
        memory.lose()
        memory.recover()
        return (
            True,
            f"process gone after {ended:.2f} s, device idle after {time.perf_counter() - start:.2f} s",
        )

    def persistent() -> tuple[bool, str]:
        other = Child(memory.describe(), confined=confined)
        memory.meet(other.process.pid, other.ask("begin")["base"])
        other.ask("spin", ms=20_000)
        other.signal(signal.SIGSTOP)
        try:
            memory.settle()
        except BusyDevice as busy:
            return True, str(busy)
        finally:
            other.signal(signal.SIGKILL)
            other.process.wait()
            memory.lose()
            memory.recover()
        return False, "not found"

    if not fact("the child opens the judge's memory", begin):
        print("again with FACTS=open, FACTS=free, FACTS=open,free")
        return
    fact("what one writes the other reads", shared)
    fact("memory of the child is read while it stands still", own_memory)
    fact("an idle device answers at once, beside a child that stands still too", quiet)
    fact("a long kernel is seen", idle("spin", stopped=False, ms=50))
    fact("a long kernel of a stopped process is seen", idle("spin", stopped=True, ms=50))
    fact("a long kernel on another stream is seen", idle("side", stopped=True, ms=50))
    fact("many short kernels are seen", idle("many", stopped=True, count=300))
    fact("products of matrices are seen", idle("products", stopped=True, count=8))
    fact("the end of a stopped process's work is waited for", waits)
    fact("a call in the child, waited for by both", switching)
    fact("free blocks of the allocator are filled with garbage", poison)
    fact("an illegal address in the child leaves the judge's device alone", illegal)
    fact("a process that is killed inside of a kernel leaves an idle device", killed)
    fact("work of a stopped process is found before it is woken", persistent)
    driver = CudaDriver()
    print(f"devices {driver.devices}; done")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(json.loads(sys.argv[1]))
    else:
        main()
