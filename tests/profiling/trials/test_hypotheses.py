from dataclasses import replace

import pytest

from profkit.core.types import (
    Account,
    AccountRow,
    ApiCall,
    CodeLine,
    CodeSpot,
    GpuTrace,
    Hotspot,
    Kernel,
    KernelTime,
    LineCode,
    Place,
    Profile,
    RunDocument,
    SampledTime,
    TimeSplit,
    Variable,
)
from profkit.profiling.trials.hypotheses import ALLOCATOR, experiments
from tests import documents


def names(document: RunDocument) -> list[str]:
    return [one.name for one in experiments(document)]


def sampled(kind: str, rows: dict[str, float], total: float = 1.0) -> RunDocument:
    spots = tuple(Hotspot(name, own, library=name) for name, own in rows.items())
    profile = Profile("samples", "s", total, spots, kind)  # type: ignore[arg-type]
    return replace(documents.empty(), machine=replace(documents.machine(), cores=8), profiles=(profile,))


def test_nothing_is_tried_where_nothing_is_known() -> None:
    assert experiments(documents.empty()) == []


def test_the_collector_is_tried_from_a_twentieth_of_the_time_on() -> None:
    little = replace(documents.empty(), sampled=(SampledTime(10.0, 10.0, collecting=0.4),))
    much = replace(documents.empty(), sampled=(SampledTime(10.0, 10.0, collecting=0.6),))
    assert names(little) == []
    assert names(much) == ["collector"]


def test_threads_that_wait_for_each_other_are_tried_with_one_and_half_of_them() -> None:
    found = experiments(sampled("libraries", {"libgomp.so.1": 0.08, "libtorch_cpu.so": 0.9}))
    assert [one.settings["OMP_NUM_THREADS"] for one in found] == ["1", "4"]
    assert names(sampled("libraries", {"libgomp.so.1": 0.03})) == []


def test_allocation_is_tried_by_what_samples_say_of_its_functions() -> None:
    (found,) = experiments(sampled("functions", {"_int_malloc": 0.06, "clear_page_erms": 0.06, "main": 0.8}))
    assert (found.name, dict(found.environment)) == ("allocator", ALLOCATOR)
    assert names(sampled("functions", {"my_malloc_wrapper": 0.5})) == []


def test_a_function_is_memoised_where_its_arguments_repeat() -> None:
    place = Place(function="Route.cost", file="/app/route.py", line=4)
    often = CodeSpot(0.6, 3.0, "python", place, looks=40, arguments=5)
    (found,) = experiments(replace(documents.empty(), hot_spots=(often,)))
    assert found.intervention == {"memoise": {"file": "/app/route.py", "function": "cost", "line": "4"}}
    for other in (
        replace(often, arguments=39),
        replace(often, share=0.01),
        replace(often, looks=3),
        replace(often, arguments=None),
        replace(often, where=replace(place, function="main.<locals>.<lambda>")),
    ):
        assert experiments(replace(documents.empty(), hot_spots=(other,))) == []


def test_output_is_tried_where_lines_print_much_and_in_small_pieces() -> None:
    split = TimeSplit(5.0, io_calls=100_000, written=1e6)
    line = CodeSpot(
        0.4, 2.0, "python", Place(file="/app/log.py", line=3), code=LineCode("print(row, flush=True)")
    )
    printing = replace(documents.empty(), time_split=split, hot_spots=(line,))
    assert names(printing) == ["output"]
    assert names(replace(printing, time_split=replace(split, written=1e9))) == []
    assert names(replace(printing, time_split=replace(split, io_calls=100))) == []
    # Imports read files, too: many calls alone say nothing of what is printed.
    assert names(replace(printing, hot_spots=(replace(line, code=LineCode("x = a @ b")),))) == []


def test_tf32_is_tried_for_products_that_the_fp32_units_limit() -> None:
    row = AccountRow("kernel", 0.6, what="mm [512,512] x [512,512]", limit="fp32", busy=0.9)
    account = Account("step", 1.0, (row,))
    assert names(replace(documents.empty(), account=account)) == ["tf32"]
    issuing = replace(account, rows=(replace(row, limit="issue"),))  # as cuBLAS on an H200
    assert names(replace(documents.empty(), account=issuing)) == ["tf32"]
    tensor = replace(account, rows=(replace(row, limit="tensor"),))
    other = replace(account, rows=(replace(row, what="softmax [512,512]"),))
    assert names(replace(documents.empty(), account=tensor)) == []
    assert names(replace(documents.empty(), account=other)) == []


def test_the_devices_allocator_is_tried_where_torch_allocates_and_keeps_what_it_frees() -> None:
    aten = KernelTime(
        Kernel("void at::native::vectorized_elementwise_kernel<4>", (1, 1, 1), (32, 1, 1)), 9, 0.1
    )
    calls = (ApiCall("cudaMalloc", 90, 0.2), ApiCall("cudaFree", 90, 0.2))
    trace = GpuTrace("nsys", (aten,), span=1.0, busy=0.1, api=calls)
    emptying = CodeSpot(
        0.4, 1.0, "python", Place(file="/app/a.py"), code=LineCode("torch.cuda.empty_cache()")
    )
    of_torch = replace(documents.empty(), trace=trace)
    own = replace(aten, kernel=Kernel("combine", (1, 1, 1), (32, 1, 1)))
    assert names(of_torch) == ["device-memory"]
    assert names(replace(of_torch, trace=replace(trace, kernels=(own,)))) == []
    assert names(replace(of_torch, hot_spots=(emptying,))) == []


LOADER = "/venv/site-packages/torch/utils/data/dataloader.py"


@pytest.mark.parametrize(
    ("reader", "tried"),
    [("_SingleProcessDataLoaderIter", ["loader"]), ("_MultiProcessingDataLoaderIter", ["workers"])],
)
def test_a_loader_gets_workers_where_it_has_none_and_keeps_them_where_it_has_some(
    reader: str, tried: list[str]
) -> None:
    held = {"loader": Variable("torch.DataLoader")}
    below = (CodeLine("_BaseDataLoaderIter.__next__", LOADER, 720, 1.0), CodeLine(f"{reader}._next_data", LOADER, 1468, 0.9))
    place, text = Place(function="epoch", file="/app/train.py", line=9), LineCode("for x, y in loader:")
    waits = CodeSpot(0.3, 1.0, "input", place, code=text, variables=held, below=below)
    assert names(replace(documents.empty(), hot_spots=(waits,))) == tried
    # Other lines of the function hold it, too, and have nothing to do with it.
    other = CodeSpot(0.6, 2.0, "library", place, code=LineCode("loss.backward()"), variables=held)
    assert names(replace(documents.empty(), hot_spots=(other,))) == []
    assert names(replace(documents.empty(), hot_spots=(replace(waits, share=0.04), other))) == []


def test_the_largest_possible_gain_is_tried_first() -> None:
    document = sampled("functions", {"malloc": 0.15, "main": 0.8})
    document = replace(document, sampled=(SampledTime(10.0, 10.0, collecting=4.0),))
    assert names(document) == ["collector", "allocator"]
