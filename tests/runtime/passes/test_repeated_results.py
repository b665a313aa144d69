"""Results of torch that come again: numbered by what they are made of, and compared by a few elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from profkit.runtime.passes.host.values import repeated_results
from profkit.runtime.passes.host.values.repeated_results import QuietRepeats, RepeatedResults

np, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")
functional = torch.nn.functional

SIZE = 256  # of a square matrix, whose elements are as many as a large result has


class Calls(torch.overrides.TorchFunctionMode):
    """Numbers every call as the companion of a process does; the name of its function is its line."""

    def __init__(self) -> None:
        super().__init__()
        self.results = RepeatedResults(torch, "cpu")

    def __torch_function__(self, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = function.__name__, kwargs or {}
        if name in ("__get__", "numel", "size"):
            return function(*args, **kwargs)
        number = self.results.number_of(function, name, args, kwargs)
        result = function(*args, **kwargs)
        self.results.note(number, name, args, result, name)
        return result


def again(step: Callable[[], object], times: int = 6) -> dict[str, tuple[int, int]]:
    """Run a step several times; of each function that is said to repeat itself the calls, and how many came again."""
    with Calls() as calls:
        for _ in range(times):
            step()
    rows = calls.results.rows(lambda line: (f"{line}.py", 1, line))
    return {str(row[3]): (int(str(row[4])), int(str(row[5]))) for row in rows}


WEIGHT = torch.nn.Parameter(torch.randn(SIZE, SIZE))
CONTEXT = torch.randn(SIZE, SIZE)


def test_a_product_of_tensors_to_which_nobody_writes_comes_again() -> None:
    assert again(lambda: functional.linear(CONTEXT, WEIGHT)) == {"linear": (6, 5)}


def test_what_follows_from_a_result_that_comes_again_comes_again_too() -> None:
    assert set(again(lambda: functional.gelu(functional.linear(CONTEXT, WEIGHT).transpose(0, 1)))) == {
        "linear",
        "transpose",
        "gelu",
    }


def test_in_each_second_pass_over_the_data_all_of_it_comes_again() -> None:
    data = [torch.randn(SIZE, SIZE) for _ in range(5)]
    found = again(lambda: [functional.linear(one, WEIGHT) for one in data], times=2)
    assert found == {"linear": (10, 5)}


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("way", ["add_", "iadd", "setitem", "view", "foreach", "out", "data"])
def test_a_result_is_another_once_somebody_wrote_to_what_it_is_made_of(way: str, inference: bool) -> None:
    with torch.inference_mode(inference):
        x = torch.randn(SIZE, SIZE)

        def step() -> None:
            nonlocal x
            functional.linear(x, WEIGHT)
            if way == "add_":
                x.add_(1.0)
            elif way == "iadd":
                x += 1.0
            elif way == "setitem":
                x[0] = torch.rand(())
            elif way == "view":
                x[3:5].mul_(2.0)
            elif way == "foreach":
                torch._foreach_add_([x], 1.0)
            elif way == "out":
                torch.add(x, 1.0, out=x)
            else:
                x.data = x.data + 1.0

        assert "linear" not in again(step)


def test_a_write_that_torch_does_not_count_is_seen_in_the_elements() -> None:
    numbers = np.ones((SIZE, SIZE), np.float32)
    shared = torch.from_numpy(numbers)

    def step() -> None:
        functional.linear(shared, WEIGHT)
        numbers[:] += 1.0

    assert again(step) == {}


@pytest.mark.parametrize("way", ["data", "out", "overload"])
def test_a_write_to_a_part_is_seen_though_torch_does_not_count_it(way: str) -> None:
    def step() -> None:
        functional.linear(CONTEXT, weight)
        if way == "data":
            weight.data[5] += 1.0
        elif way == "out":
            torch.add(weight[5:6], 1.0, out=weight[5:6])
        else:
            torch.ops.aten.add_.Tensor(weight[5], 1.0)

    with torch.inference_mode(way != "data"), Calls() as calls:
        weight = torch.nn.Parameter(torch.randn(SIZE, SIZE), requires_grad=way == "data")
        for _ in range(6):
            step()
    assert [row.again for (name, _), row in calls.results._rows.items() if name == "linear"] == [0]


@pytest.mark.parametrize("training", [False, True])
def test_what_is_made_of_running_means_is_another_once_they_were_updated(training: bool) -> None:
    images, means, deviations = torch.randn(2, 4, 128, 128), torch.zeros(4), torch.ones(4)

    def step() -> None:
        functional.batch_norm(images[:, :, :1], means, deviations, training=training)
        functional.batch_norm(images, means, deviations)

    with Calls() as calls:
        for _ in range(6):
            step()
    again = [row.again for (name, _), row in calls.results._rows.items() if name == "batch_norm"]
    assert again == ([0] if training else [5])


def test_a_write_to_a_small_part_that_torch_does_not_count_is_seen_in_the_sum() -> None:
    numbers = np.ones((SIZE, SIZE), np.float32)
    shared = torch.from_numpy(numbers)

    def step() -> None:
        functional.linear(CONTEXT, shared)
        numbers[5] += 1.0

    assert again(step) == {}


@pytest.mark.parametrize("kind", [torch.bool, torch.bfloat16, torch.float64, torch.complex64])
def test_results_of_every_type_of_number_are_compared(kind: torch.dtype) -> None:
    assert "to" in again(lambda: CONTEXT.to(kind))


def test_writes_that_torch_does_not_count_are_seen_after_a_warm_up_that_repeats_itself() -> None:
    numbers, done = np.ones((SIZE, SIZE), np.float32), 0
    shared = torch.from_numpy(numbers)

    def step() -> None:
        nonlocal done
        functional.linear(CONTEXT, shared)
        done += 1
        if done > 6:
            numbers[:] += 1.0

    assert again(step, times=30) == {}


@pytest.mark.parametrize(("training", "found"), [(True, False), (False, True)])
def test_a_dropout_comes_again_where_it_drops_nothing_alone(training: bool, found: bool) -> None:
    def step() -> None:
        functional.linear(functional.dropout(CONTEXT, 0.5, training), WEIGHT)

    assert ("linear" in again(step)) == found


@pytest.mark.parametrize(
    "step",
    [
        lambda: functional.linear(torch.randn(SIZE, SIZE), WEIGHT),
        lambda: torch.nn.init.normal_(torch.empty(SIZE, SIZE)),
        lambda: torch.zeros(SIZE, SIZE),
        lambda: CONTEXT.clone(),
        lambda: functional.linear(CONTEXT, WEIGHT).add_(1.0),
        lambda: functional.linear(CONTEXT[:8], WEIGHT),
        lambda: torch.bernoulli(CONTEXT.sigmoid()),
        lambda: torch._standard_gamma(CONTEXT.abs()),
    ],
    ids=[
        "by chance",
        "by chance in place",
        "a buffer",
        "a copy",
        "written to",
        "small",
        "of chances",
        "of a gamma",
    ],
)
def test_what_is_made_anew_or_to_be_written_to_does_not_come_again(step: Callable[[], object]) -> None:
    assert not {"linear", "randn", "normal_", "zeros", "clone", "bernoulli", "add_", "_standard_gamma"} & set(
        again(step)
    )


def test_a_tensor_that_takes_the_place_of_one_that_is_gone_is_another() -> None:
    def step() -> None:
        batch = torch.from_numpy(
            np.full((SIZE, SIZE), 1.0, np.float32)
        )  # equal, and often at the same address
        functional.linear(batch, WEIGHT)

    assert again(step) == {}


def test_no_tensor_is_kept_alive_or_gets_an_attribute() -> None:
    import weakref

    with Calls():
        result = functional.linear(CONTEXT, WEIGHT)
        gone = weakref.ref(result)
        assert not result.__dict__
        del result
    assert gone() is None
    assert not CONTEXT.__dict__


def test_errors_reach_nobody_and_end_the_numbering(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> int:
        raise RuntimeError

    monkeypatch.setattr(repeated_results.RepeatedResults, "number_of", fails)
    quiet = QuietRepeats()
    numbers = [quiet.before(torch, torch.add, "add", (CONTEXT, 1), {}) for _ in range(30)]
    quiet.after(None, "add", (CONTEXT, 1), CONTEXT, "line")
    assert numbers == [None] * 30
    assert quiet.rows(lambda line: (line, 1, "")) == []


def test_tensors_can_be_swapped_once_all_is_forgotten() -> None:
    quiet, (one, other) = QuietRepeats(), (torch.ones(3), torch.zeros(3))
    quiet.after(quiet.before(torch, torch.add, "add", (one, other), {}), "add", (one, other), one, "line")
    quiet.forget()
    torch.utils.swap_tensors(one, other)
    assert one.tolist() == [0, 0, 0]
