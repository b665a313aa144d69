"""What a look at values tells: alternatives of a pattern, denormal numbers, what has grown, who holds a lock."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, NamedTuple
from weakref import WeakSet

import pytest

from profkit.runtime.passes.host.values import FunctionValues, count_alternatives
from profkit.runtime.passes.host.values.same_arrays import owns_its_numbers
from profkit.runtime.passes.host.values.tasks import awaited_frames


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("abc", 0),
        ("a|b|c", 3),
        (r"\b(?:a|b|c\.d)\b", 3),
        (b"a|b", 2),
        ("x[|)]y|z", 1),  # a class is no plain text
        ("(?:a(?:b|c)|d)|e", 2),  # the largest group
        ("(a.*|b+|c)", 1),
        (r"(?i:foo|bar\|x)", 2),
        ("[]|]|a", 1),
        ("(", 0),
    ],
)
def test_alternatives_of_plain_text_are_counted(pattern: object, words: int) -> None:
    assert count_alternatives(pattern) == words


def looked_at(values: list[object]) -> dict[str, list[object]]:
    """What looks at a function whose variable holds one after the other tell of it."""
    seen = FunctionValues()
    for held in values:
        seen.look(_frame_with(held))
    return seen.types


def _frame_with(held: object) -> FrameType:
    return sys._getframe()


def test_what_is_longer_at_each_look_has_its_first_length() -> None:
    assert looked_at([[1], [1, 2], [1, 2, 3]])["held"] == ["list", 3, 1]
    assert looked_at([[1, 2], [1], [1, 2, 3]])["held"] == ["list", 3, -1]


def test_a_pattern_tells_its_words() -> None:
    assert looked_at([re.compile("a|b|c")])["held"] == ["re.Pattern", 3, 3]


def test_denormal_numbers_and_slow_types_are_seen() -> None:
    numpy = pytest.importorskip("numpy")
    small = numpy.full(1000, 1e-310)
    small[::2] = 1.0
    seen = looked_at([small])
    assert seen["held"][0] == "numpy.ndarray"
    assert 400 <= seen["held [denormal]"][1] <= 600  # type: ignore[operator]
    assert "held [denormal]" not in looked_at([numpy.zeros(1000)])
    assert looked_at([small.astype(numpy.float16)])["held"][0] == "numpy.ndarray of float16"


class _Kept:
    """Stands for what pandas keeps of a grouping: its own objects have no more than their attributes."""

    def __init__(self, **held: object) -> None:
        vars(self).update(held)


class _Frame(list[int]):
    __module__ = "pandas.core.frame"


class Categorical:
    __module__ = "pandas.core.arrays.categorical"

    def __init__(self, number: int) -> None:
        self.categories = range(number)


def _grouped(observed: object, *numbers: int) -> dict[str, list[object]]:
    """What a look tells of a grouping of ten thousand rows by columns with so many categories."""
    groupings = [_Kept(_observed=observed, grouping_vector=Categorical(number)) for number in numbers]
    kind = type("DataFrameGroupBy", (_Kept,), {"__module__": "pandas.core.groupby.generic"})
    grouped = kind(_grouper=_Kept(_groupings=groupings), obj=_Frame(range(10_000)))

    def method(self: object) -> FrameType:
        return sys._getframe()

    seen = FunctionValues()
    seen.look_at_groups(method(grouped), 12)
    return seen.types


def test_groups_of_categories_are_counted_where_most_are_empty() -> None:
    assert _grouped(False, 900, 2700) == {
        "12 [groups]": ["groups", 2_430_000, 2_430_000],
        "12 [grouped rows]": ["rows", 10_000, 10_000],
    }
    assert _grouped(True, 900, 2700) == {}
    assert _grouped(False, 900, 100) == {}  # fewer than ten for each row
    assert _grouped(False) == {}


async def _held_by_one(*, of_one_lock: bool) -> tuple[str, bool]:
    locks = [asyncio.Lock() for _ in range(3)]

    async def ask(number: int) -> None:
        async with locks[0 if of_one_lock else number]:
            await asyncio.sleep(0.05)

    async def other() -> None:
        await asyncio.sleep(0.05)

    tasks = [asyncio.ensure_future(one) for one in (ask(0), ask(1), ask(2), other(), other())]
    await asyncio.sleep(0.01)
    # Of this loop alone: what else runs in this process may have tasks in a loop of its own.
    frames, alone = awaited_frames(WeakSet(asyncio.all_tasks()))
    await asyncio.gather(*tasks)
    return frames[-1].f_code.co_name if frames else "", alone


def test_of_several_that_wait_for_a_lock_the_one_that_has_it_is_told_beside_others_that_wait_for_else() -> (
    None
):
    # In a thread of its own: a browser that another test keeps open has a loop in the main one.
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(asyncio.run, _held_by_one(of_one_lock=True)).result() == ("ask", True)
        name, alone = thread.submit(asyncio.run, _held_by_one(of_one_lock=False)).result()
    assert (name, alone) != ("ask", True)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while line := await reader.readline():
        await asyncio.sleep(0.3)
        writer.write(line)


async def _ask(port: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"price\n")
    await reader.readline()
    writer.close()


async def _seen_while_asked(clients: int, loops: list[asyncio.AbstractEventLoop]) -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    loops.append(asyncio.get_running_loop())
    if clients == 1:
        await _ask(port)
    elif clients:
        await asyncio.gather(*(_ask(port) for _ in range(clients)))
    else:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        with suppress(TimeoutError):
            await asyncio.wait_for(server.serve_forever(), 0.3)
        writer.close()
    server.close()


def test_a_task_that_asks_for_its_own_variables_keeps_them_as_a_server_is_looked_for() -> None:
    async def keep(held: list[int]) -> tuple[int, bool]:
        kept = locals()
        await asyncio.sleep(0.2)
        return len(kept), "held" in kept

    async def run(loops: list[asyncio.AbstractEventLoop]) -> tuple[int, bool]:
        task = asyncio.ensure_future(keep([1, 2, 3]))
        loops.append(asyncio.get_running_loop())
        return await task

    loops: list[asyncio.AbstractEventLoop] = []
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(asyncio.run, run(loops))
        while not loops:
            time.sleep(0.01)
        time.sleep(0.05)
        awaited_frames(WeakSet(asyncio.all_tasks(loops[0])))
        assert result.result() == (1, True)


@pytest.mark.parametrize(("clients", "alone"), [(1, True), (2, False), (0, False)])
def test_a_server_in_the_same_program_does_not_hide_that_its_only_client_asks_one_thing_at_a_time(
    clients: int, alone: bool
) -> None:
    loops: list[asyncio.AbstractEventLoop] = []
    with ThreadPoolExecutor(1) as thread:
        run = thread.submit(asyncio.run, _seen_while_asked(clients, loops))
        while not loops:
            time.sleep(0.01)
        time.sleep(0.1)  # in which the question is sent
        frames, told = awaited_frames(WeakSet(asyncio.all_tasks(loops[0])))
        run.result()
    assert told == alone
    if alone:
        assert "_ask" in [frame.f_code.co_name for frame in frames]


LIBRARY = "import asyncio\nasync def start(self):\n    await asyncio.sleep(0.3)\n"


@pytest.mark.parametrize(
    ("file", "alone"), [("/venv/aiohttp/web_protocol.py", True), ("/app/jobs.py", False)]
)
def test_a_connection_that_a_librarys_server_answers_does_not_count_beside_its_only_client(
    file: str, alone: bool
) -> None:
    names: dict[str, Any] = {}
    exec(compile(LIBRARY, file, "exec"), names)

    async def run(loops: list[asyncio.AbstractEventLoop]) -> None:
        answers = asyncio.ensure_future(names["start"](None))
        loops.append(asyncio.get_running_loop())
        reader = asyncio.StreamReader()
        asyncio.get_running_loop().call_later(0.2, reader.feed_eof)
        await reader.readline()
        await answers

    loops: list[asyncio.AbstractEventLoop] = []
    with ThreadPoolExecutor(1) as thread:
        result = thread.submit(asyncio.run, run(loops))
        while not loops:
            time.sleep(0.01)
        time.sleep(0.05)
        _, told = awaited_frames(WeakSet(asyncio.all_tasks(loops[0])))
        result.result()
    assert told == alone


class _Record(NamedTuple):
    state: object
    reward: float


class _Slots:
    __slots__ = ("state", "unset")

    def __init__(self, state: object) -> None:
        self.state = state


def _frame_of_reader(held: Any) -> FrameType:
    if sys.flags.verbose > 9:  # never: the names and texts are what counts
        print(held.state, held["state"])
    return sys._getframe()


@pytest.mark.parametrize("make", [list, tuple])
def test_what_sequences_hold_is_told_by_their_first_element(make: Callable[[object], object]) -> None:
    numpy = pytest.importorskip("numpy")
    rows = make([numpy.zeros(192), numpy.ones(192)])
    arrays = ["numpy.ndarray", 192, 192]
    for held, name in (
        (rows, "held"),
        (_Record(rows, 1.0), "held.state"),
        ([_Record(numpy.zeros(192), 1.0)], "held[].state"),
        ([(numpy.zeros(192), 1)], "held[][0]"),
        ({"state": rows}, "held['state']"),
        (_Slots(rows), "held.state"),
    ):
        seen = FunctionValues()
        seen.look(_frame_of_reader(held))
        assert {name: kept for name, kept in seen.types.items() if "[elements]" in name} == {
            f"{name} [elements]": arrays
        }


def test_plain_numbers_and_objects_of_the_program_tell_nothing_of_elements() -> None:
    numpy = pytest.importorskip("numpy")
    assert looked_at([[[1.0, 2.0]]])["held [elements]"] == ["list", 2, 2]
    assert looked_at([[numpy.float32(1)]])["held [elements]"] == ["numpy.number", 1, 1]
    others: list[object] = [
        [1.0, 2.0],
        [],
        [[]],
        [["a"]],
        [object()],
        numpy.zeros((3, 3)),
        [numpy.array(["a"])],
    ]
    for held in others:
        assert "held [elements]" not in looked_at([held])


class _Asked:
    """It fails if a look at it runs its own code."""

    def __getattribute__(self, name: str) -> object:
        raise AssertionError(name)


def test_a_look_runs_no_code_of_the_program() -> None:
    seen = FunctionValues()
    seen.look(_frame_of_reader([_Asked()]))
    seen.look(_frame_of_reader(_Asked()))
    assert not any("[elements]" in name for name in seen.types)


def test_relations_of_an_object_of_django_tell_what_they_are_and_what_is_prefetched() -> None:
    """Stands for Django: the class of models, and the descriptor of a relation, by their modules."""
    kind = type("ModelBase", (type,), {"__module__": "django.db.models.base"})
    descriptor = type(
        "ReverseManyToOneDescriptor", (), {"__module__": "django.db.models.fields.related_descriptors"}
    )
    model = kind("Order", (), {"state": descriptor(), "number": 3})
    order = model()
    seen = FunctionValues()
    seen.look(_frame_of_reader(order))
    assert seen.types == {"held.state [relation]": ["ReverseManyToOneDescriptor", -1, -1]}
    order._prefetched_objects_cache = {"state": object()}
    seen.look(_frame_of_reader(order))
    assert seen.types["held.state [prefetched]"] == ["list", 1, 1]
    assert "held.number [relation]" not in seen.types


class Registry:
    """A program's object with a method that is looked at."""

    def frame(self, name: str) -> FrameType:
        return sys._getframe()


def test_arguments_of_a_method_are_told_apart_as_long_as_it_has_one_object() -> None:
    first, seen = Registry(), FunctionValues()
    for name in ("a", "b", "a"):
        seen.look(first.frame(name))
    assert seen.arguments is not None
    assert len(seen.arguments) == 2
    seen.look(Registry().frame("a"))
    assert seen.arguments is None


def test_a_new_object_at_the_place_of_a_freed_one_is_another_one() -> None:
    seen = FunctionValues()
    seen.look(Registry().frame("a"))
    seen.look(Registry().frame("a"))
    assert seen.arguments is None


def test_an_array_that_stays_the_same_is_known_for_how_long() -> None:
    numpy = pytest.importorskip("numpy")
    table = numpy.arange(100_000.0)
    told = looked_at([table, table, table])["held [same]"]
    assert (told[0], type(told[1]), told[2]) == ("ms", int, -1)
    assert "held [same]" not in looked_at([table])  # seen once
    assert "held [same]" not in looked_at([table, table.copy(), table])  # another one of the same numbers
    assert "held [same]" not in looked_at(
        [table[:1000]] * 3
    )  # of which the calls take the time, not the bytes


def written_between(array: Any, write: Callable[[], object]) -> dict[str, list[object]]:
    """What two looks at an array tell that is written to between them, and a third one after that."""
    seen = FunctionValues()
    seen.look(_frame_with(array))
    write()
    for _ in range(2):
        seen.look(_frame_with(array))
    return seen.types


def test_a_buffer_that_each_step_fills_anew_is_not_the_same() -> None:
    numpy = pytest.importorskip("numpy")
    buffer = numpy.zeros(100_000)
    assert "held [same]" not in written_between(buffer, lambda: buffer.fill(1.0))
    assert "held [same]" in written_between(buffer, lambda: None)


def test_a_tensor_that_is_filled_anew_is_not_the_same_whoever_writes_to_it() -> None:
    torch = pytest.importorskip("torch")
    tensor, array = torch.zeros(100_000), torch.zeros(100_000).numpy()
    assert "held [same]" in written_between(tensor, lambda: None)
    assert "held [same]" not in written_between(
        tensor, lambda: tensor[7:8].fill_(1.0)
    )  # by its version alone
    shared = torch.from_numpy(array)
    assert "held [same]" not in written_between(shared, lambda: array.fill(1.0))  # by its numbers alone
    with torch.inference_mode():
        known = torch.zeros(100_000, dtype=torch.bfloat16)
    assert "held [same]" in written_between(known, lambda: None)
    assert "held [same]" not in written_between(torch.zeros(100_000).to_sparse(), lambda: None)


def test_an_object_that_another_thread_adds_to_is_looked_at_without_a_failure() -> None:
    class Model:
        """What a program adds attributes to all the time."""

    model, ended = Model(), threading.Event()

    def add() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            setattr(model, f"a{number % 997}", number)
            if number % 997 == 0:
                vars(model).clear()

    thread = threading.Thread(target=add)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(300):
            FunctionValues().look_at_arguments(_frame_with(model))
    finally:
        sys.setswitchinterval(interval)
        ended.set()
        thread.join()


def test_numbers_in_memory_of_others_are_not_read(tmp_path: Path) -> None:
    """The program may have closed or cut it: to read it would end the program."""
    numpy = pytest.importorskip("numpy")
    own = numpy.zeros(100_000)
    file = tmp_path / "numbers"
    own.tofile(file)
    mapped = numpy.memmap(file, dtype="f8", mode="r")
    others = [
        mapped, numpy.asarray(mapped), numpy.asarray(mapped)[1:], numpy.frombuffer(bytes(800_000)),
        numpy.ndarray((100_000,), "f8", bytearray(800_000)),
    ]  # fmt: skip
    assert [owns_its_numbers(array) for array in (own, own[1:], own.reshape(100, -1))] == [True] * 3
    assert not any(map(owns_its_numbers, others))
    for array in others:
        assert "held [same]" not in looked_at([array] * 3)


def test_tensors_in_memory_of_others_are_not_read() -> None:
    torch = pytest.importorskip("torch")
    shared, foreign = (
        torch.zeros(100_000).share_memory_(),
        torch.frombuffer(bytearray(400_000), dtype=torch.float32),
    )
    for tensor in (shared, foreign):
        assert "held [same]" not in looked_at([tensor] * 3)


def test_an_array_that_was_looked_at_can_be_resized() -> None:
    numpy = pytest.importorskip("numpy")
    array = numpy.zeros(100_000)
    assert "held [same]" in looked_at([array, array])
    array.resize(200_000, refcheck=False)
    assert array.size == 200_000


def test_the_locals_that_a_program_keeps_stay_whole() -> None:
    def kept(name: str) -> dict[str, object]:
        seen.look(sys._getframe())
        found = locals()
        seen.look(sys._getframe())
        return found

    def given(name: str) -> None:
        known = sys._getframe().f_locals
        seen.look(sys._getframe())
        assert known["name"] == name

    seen = FunctionValues()
    assert kept("bob")["name"] == "bob"
    given("bob")


class Hostile(type):
    """A metaclass that runs code of the program whenever a type is asked."""

    asked: ClassVar[list[str]] = []

    def __getattribute__(cls, name: str) -> Any:
        Hostile.asked.append(name)
        raise KeyError(name)


def test_a_metaclass_of_the_program_is_not_asked() -> None:
    class Value(metaclass=Hostile):
        pass

    Hostile.asked.clear()
    value = type.__call__(Value)
    Hostile.asked.clear()
    seen = FunctionValues()
    for held in (value, [value], (value, value)):
        seen.look(_frame_with(held))
        seen.look_at_arguments(_frame_with(held))
    assert Hostile.asked == []
