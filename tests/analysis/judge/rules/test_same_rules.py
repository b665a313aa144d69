"""Members of archives, stores and datasets that are read again, and what is read once or in parts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.rules.spot_values import linear_search
from profkit.analysis.judge.rules.work.array_scans import masks_by_name
from profkit.analysis.judge.rules.work.growth import grown_search, regrown_input
from profkit.analysis.judge.rules.work.same import item_again, member_again, read_again
from profkit.analysis.stacks.source import line_code
from profkit.core.types import (
    FIRST_CALLS,
    LAST_CALLS,
    Beneath,
    CodeLine,
    CodeSpot,
    Hotspot,
    Insight,
    LineCount,
    LineSamples,
    Place,
    Profile,
    SampledLoop,
    SampledTime,
    Variable,
)
from tests import documents

WORK = "/app/climate.py"
CLASS = """import numpy as np
class Year:
    def __init__(self, path):
        self.data = np.load(path)
    def warm(self, row):
        return self.data["t2m"][:, row]
    def wind(self, row):
        return self.data["wind"][:, row]
def main(year, rows):
    for row in rows:
        print(year.warm(row), year.wind(row))
"""
NPZ = ("NpzFile.__getitem__", "/lib/numpy/lib/_npyio_impl.py")


def spot_at(
    text: str, line: int, function: str, share: float, below: tuple[str, str], times: int = 50
) -> CodeSpot:
    """A place whose time is in a library's function, called so often from the loop of `main`."""
    called_from = next(n for n, each in enumerate(text.splitlines(), 1) if "print(" in each)
    return CodeSpot(
        share, 4.5 * share, "library", Place(function=function, file=WORK, line=line),
        code=line_code(text, line), under=Beneath("__getitem__", "numpy", calls=times, public="NpzFile[]"),
        calls=times, executions=times, caller_code=line_code(text, called_from),
        below=(CodeLine(below[0], below[1], 239, 0.97),),
    )  # fmt: skip


def found_at(*spots: CodeSpot) -> list[Insight]:
    document = replace(documents.empty(), hot_spots=spots)
    return [found for spot in spots if (found := member_again(document, spot)) is not None]


def climate(times: int = 50, text: str = CLASS) -> list[Insight]:
    return found_at(
        spot_at(text, 6, "Year.warm", 0.3, NPZ, times), spot_at(text, 8, "Year.wind", 0.28, NPZ, times)
    )


def test_an_array_of_an_npz_file_that_is_read_each_time_is_to_be_kept() -> None:
    (found,) = climate()
    assert found.title == "self.data['t2m'] reads the same again 50 times: keep what it gives"
    assert "reads all of it again, and decompresses what is compressed: 27.0 ms each time" in found.evidence
    assert "so does self.data['wind'] in line 8 (28 %)" in found.evidence
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.58 * 49 / 50)


def test_what_is_read_a_few_times_or_quickly_or_of_other_objects_is_not_told() -> None:
    assert not climate(times=3)
    assert not climate(times=200_000)  # 7 µs each: it is in memory
    other = CLASS.replace("year.warm(row), year.wind(row)", "row.year.warm(row), row.year.wind(row)")
    assert not climate(text=other)  # another object each time


def test_what_was_fetched_once_is_silent() -> None:
    fixed = CLASS.replace("np.load(path)", "np.load(path)['t2m']").replace('self.data["t2m"]', "self.data")
    assert not found_at(spot_at(fixed, 6, "Year.warm", 0.3, ("mean", "/lib/numpy/_core/_methods.py")))


_LOOP = "def main(file, names):\n    for name in names:\n        print({}.sum())\n"


@pytest.mark.parametrize(
    ("asked", "below", "change"),
    [
        ("file['a'][:]", ("Dataset.__getitem__", "/lib/h5py/_hl/dataset.py"), "values = file['a'][:]"),
        ("file['a'][:]", ("Array.__getitem__", "/lib/zarr/core/array.py"), "values = file['a'][:]"),
        ("file['a']", ("HDFStore.__getitem__", "/lib/pandas/io/pytables.py"), "value = file['a']"),
        ("file['a']", ("Shelf.__getitem__", "/lib/python3.12/shelve.py"), "value = file['a']"),
        ("file.read('a')", ("ZipFile.read", "/lib/python3.12/zipfile/__init__.py"), "kept = file.read('a')"),
        ("file.extractfile('a').read()", ("_FileInFile.read", "/lib/python3.12/tarfile.py"), "file.extractfile('a')"),
    ],
)  # fmt: skip
def test_so_it_is_of_other_archives_stores_and_datasets(
    asked: str, below: tuple[str, str], change: str
) -> None:
    (found,) = found_at(spot_at(_LOOP.format(asked), 3, "main", 0.6, below))
    assert change in found.change


@pytest.mark.parametrize(
    ("asked", "below"),
    [
        ("file['a'][name]", ("Dataset.__getitem__", "/lib/h5py/_hl/dataset.py")),  # the part that is wanted
        ("file[name][:]", ("Dataset.__getitem__", "/lib/h5py/_hl/dataset.py")),  # each once
        ("file.read(name)", ("ZipFile.read", "/lib/python3.12/zipfile/__init__.py")),
        ("file['a']", ("Cache.__getitem__", "/app/cache.py")),  # of the program
    ],
)
def test_parts_and_other_members_are_silent(asked: str, below: tuple[str, str]) -> None:
    assert not found_at(spot_at(_LOOP.format(asked), 3, "main", 0.6, below))


def test_a_variable_of_netcdf_has_no_frames_and_is_known_by_its_type() -> None:
    spot = spot_at(_LOOP.format("file.variables['a'][:]"), 3, "main", 0.6, ("main", WORK))
    assert not found_at(spot)
    (found,) = found_at(replace(spot, variables={"file": Variable("netCDF4.Dataset", None)}))
    assert "file.variables['a'][:] reads the same again" in found.title


MEASURE = """def measure(image, labels):
    for label in range(1, labels.max()):
        mask = labels == label
        out[label] = image[mask].mean()
"""


@pytest.mark.parametrize(("times", "calls", "said"), [(2200, 1, [4]), (2200, 100, []), (None, 1, [])])
def test_masks_by_name_are_told_where_one_loop_makes_many(
    times: int | None, calls: int, said: list[int]
) -> None:
    held = {name: Variable("numpy.ndarray", 1_000_000) for name in ("image", "labels")}
    spots = [
        CodeSpot(
            line / 10, line / 2, "python", Place(function="measure", file=WORK, line=line),
            code=line_code(MEASURE, line),
            calls=calls, variables=held,
        )
        for line in (3, 4)
    ]  # fmt: skip
    counts = (LineCount(WORK, 3, "measure", times, 2),) if times else ()
    document = replace(documents.empty(), hot_spots=tuple(spots), line_counts=counts)
    found = [insight for spot in spots if (insight := masks_by_name(document, spot)) is not None]
    assert [(insight.rule, insight.where.line) for insight in found] == [
        ("mask-for-each", line) for line in said
    ]


COMPOSE = """import torch
def compose(model, tune):
    for _ in range(240):
        logits, _ = model(tune)
        tune = torch.cat([tune, pick(logits)], dim=1)
"""


@pytest.mark.parametrize("grows", [True, False])
def test_a_model_that_gets_a_growing_sequence_is_told_where_its_iterations_grow(grows: bool) -> None:
    place = Place(function="compose", file=WORK, line=4)
    under = Beneath("_wrapped_call_impl", "torch", calls=240, public="Module")
    spot = CodeSpot(0.8, 8.0, "library", place, under, line_code(COMPOSE, 4))
    loop = SampledLoop(WORK, 3, "compose", 4, 5, 0.8, 8.0)
    parts = tuple(float(n) for n in range(1, 9)) if grows else (1.0,) * 8
    document = replace(
        documents.empty(),
        hot_spots=(spot,),
        sampled=(SampledTime(10.0, 10.0, loops=(loop,)),),
        line_counts=(LineCount(WORK, 4, "compose", 240, parts=parts),),
    )
    found = regrown_input(document, spot)
    assert (found is not None) == grows
    if found is not None:
        assert found.title == "The model gets all of tune again in each iteration, although one item is new"
        assert found.gain is not None
        assert found.gain.at_most == pytest.approx(0.8 * (1 - 2 / 9))


@pytest.mark.parametrize(("called_by", "said"), [("/lib/torch/nn/modules/module.py", True), (WORK, False)])
def test_a_growing_sequence_is_told_at_its_loop_where_the_time_is_in_a_module_of_the_program(
    called_by: str, said: bool
) -> None:
    inside = Place(function="Block.forward", file=WORK, line=40)
    spot = CodeSpot(
        0.3, 3.0, "library", inside, Beneath("linear", "torch"), line_code("x = self.mlp(x)\n", 1),
        callers=(CodeLine("_call_impl", called_by, 1789, 3.0),),
    )  # fmt: skip
    loop = SampledLoop(WORK, 3, "compose", 4, 5, 0.9, 9.0)
    outer = LineSamples("compose", WORK, 4, 9.0, code=line_code(COMPOSE, 4))
    within = LineSamples("Block.forward", WORK, 40, 3.0, within=(CodeLine("compose", WORK, 4, 3.0),))
    parts = (1.0, 1.5, 2.2, 4.0, 3.7, 4.3, 6.7, 6.2)  # as measured beside other programs
    document = replace(
        documents.empty(),
        hot_spots=(spot,),
        sampled=(SampledTime(10.0, 10.0, loops=(loop,), lines=(within,), outer=(outer,)),),
        line_counts=(LineCount(WORK, 4, "compose", 240, parts=parts),),
    )
    found = regrown_input(document, spot)
    assert (found is not None) == said
    if found is not None:
        assert (found.where.function, found.where.line) == ("compose", 4)
        assert found.gain is not None
        assert found.gain.at_most == pytest.approx(0.9 * (1 - 2 / 7.2))


QUEUE = """class Queue:
    def __init__(self):
        self.seen = []
    def admit(self, claim):
        key = (claim.day, claim.policy)
        if key in self.seen:
            return False
        self.seen.{add}(key)
        return True
queue = Queue()
for claim in claims:
    queue.admit(claim)
"""


@pytest.mark.parametrize(
    ("add", "own", "last", "said"),
    [
        ("append", 2.0, 9e-5, True),
        ("add", 2.0, 9e-5, False),  # a set is not searched
        ("append", 0.2, 9e-5, False),  # what it calls takes the time
        ("append", 2.0, None, False),  # its calls take no longer
    ],
)
def test_a_list_that_a_function_appends_to_and_searches_is_told_where_its_calls_take_longer(
    add: str, own: float, last: float | None, said: bool
) -> None:
    text = QUEUE.format(add=add)
    code = line_code(text, 12)
    assert code is not None
    inner = code.into[0]
    assert inner.line == (6 if add == "append" else 5)
    growth = {FIRST_CALLS: 1e-5, LAST_CALLS: last} if last is not None else {}
    counted = Hotspot("admit", own, 2.0, 40_000, WORK, 4, counters=growth)
    place = Place(function="Queue.admit", file=WORK, line=inner.line)
    spot = CodeSpot(0.8, 2.0, "python", place, None, inner.code, calls=40_000)
    document = replace(documents.empty(), profiles=(Profile("", "s", 2.2, (counted,), "own-time"),))
    found = grown_search(document, spot)
    assert (found is not None) == said
    if found is not None:
        assert found.title == "self.seen is a list that grows: do not search it each time"
        assert "10.0 µs at first and 90.0 µs at the end" in found.evidence


CLIPS = """import torch
class Clips(Dataset):
    def __getitem__(self, index):
        wave = self.waves[index] / 2
        made = torch.log({made})
        return made, self.labels[index]
"""


@pytest.mark.parametrize(
    ("made", "calls", "kind", "said"),
    [
        ("self.bank @ wave", 1440, "list", True),
        ("self.bank @ wave", 160, "list", False),  # a single pass
        ("self.bank @ (wave + torch.randn(3))", 1440, "list", False),  # another each time
        ("self.augment(wave)", 1440, "list", False),
        ("self.bank @ wave", 1440, "torch.Tensor", False),  # its elements are no items
    ],
)
def test_items_of_a_dataset_that_each_pass_makes_again_are_told_by_their_calls(
    made: str, calls: int, kind: str, said: bool
) -> None:
    place = Place(function="Clips.__getitem__", file=WORK, line=5)
    spot = CodeSpot(
        0.45, 2.0, "python", place, Beneath("log", "torch", calls=calls), line_code(CLIPS.format(made=made), 5),
        calls=calls, variables={"self.waves": Variable(kind, 160)},
    )  # fmt: skip
    found = item_again(replace(documents.empty(), hot_spots=(spot,)), spot)
    assert (found is not None) == said
    if found is not None:
        assert "1,440 calls for 160 items, about 9 times each" in found.evidence
        assert found.gain is not None
        assert found.gain.at_most == pytest.approx(0.45 * 8 / 9)


OFFICE = """import json
def load_tariff(path):
    return json.load(open(path))
class Office:
    def __init__(self, path):
        self.path = path
    def assess(self, parcel):
        return load_tariff(self.path)[parcel]
    def move(self):
        {moves}
"""


@pytest.mark.parametrize(
    ("moves", "offices", "said"),
    [("pass", 1, True), ("pass", 1200, False), ("self.path = other()", 1, False), ("pass", None, False)],
)
def test_a_file_that_a_method_of_few_objects_reads_is_the_same(
    moves: str, offices: int | None, said: bool
) -> None:
    text = OFFICE.format(moves=moves)
    place = Place(function="load_tariff", file=WORK, line=3)
    spot = CodeSpot(
        0.75, 2.0, "library", place, Beneath("load", "standard library", calls=1200), line_code(text, 3),
        calls=1200, caller_code=line_code(text, 8),
    )  # fmt: skip
    made = (Hotspot("__init__", 0.01, 0.01, offices, WORK, 5),) if offices else ()
    document = replace(documents.empty(), profiles=(Profile("", "s", 2.0, made, "own-time"),))
    assert (read_again(document, spot) is not None) == said


OFFER = """class Frontier:
    def offer(self, url, depth):
        if url in self.known:
            return False
        self.known.append(url)
        {last}
        return True
"""


@pytest.mark.parametrize(
    ("last", "kind", "seconds", "said"),
    [
        ("self.queue.append((url, depth))", "list", 0.7, True),
        ("self.queue.append((url, depth))", "set", 0.7, False),
        ("self.queue.append((url, depth))", "list", 0.03, False),  # as long as it takes to append
        ("self.queue.append(parse(url))", "list", 0.7, False),  # this may take the time
    ],
)
def test_a_search_is_told_where_the_samples_were_taken_at_an_append_behind_it(
    last: str, kind: str, seconds: float, said: bool
) -> None:
    place = Place(function="Frontier.offer", file=WORK, line=6)
    spot = CodeSpot(
        0.3, seconds, "python", place, code=line_code(OFFER.format(last=last), 6), calls=34_000,
        variables={"self.known": Variable(kind, 9_000)},
    )  # fmt: skip
    found = linear_search(documents.empty(), spot)
    assert (found is not None) == said
    assert found is None or (found.rule, found.where.line) == ("linear-search", 3)
