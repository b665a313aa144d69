"""Lines of a compiled program by symbol and offset."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.backends.source_lines import source_places, with_source
from profkit.core.types import CodeLine, LineSamples, Report, SampledTime, Workload

OVERLOADED = """
template <class T> __attribute__((noinline)) T twice(T value) {
    return value + value;
}
__attribute__((noinline)) int work(const char* text, int times) {
    return text[0] * times + twice(times);
}
int main(int count, char** words) { return work(words[0], count) + (int)twice(0.5 * count); }
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_a_function_of_cpp_is_found_by_the_name_that_perf_prints_without_parameters(tmp_path: Path) -> None:
    source, program = tmp_path / "over.cpp", tmp_path / "over"
    source.write_text(OVERLOADED)
    subprocess.run(["g++", "-g", "-O1", "-o", program, source], check=True)
    found = source_places(program, [("work", 0), ("twice<int>", 0), ("main", 0), ("absent", 0)])
    lines = {key[0]: (code.place.file, code.place.line) for key, code in found.items() if code.place}
    assert lines == {
        name: (str(source), line) for name, line in {"work": 5, "twice<int>": 3, "main": 8}.items()
    }


def test_the_time_in_a_functions_head_is_that_of_its_body(tmp_path: Path) -> None:
    source = tmp_path / "app.py"
    source.write_text("def work(x):\n    y = x + 1\n    return y\n")
    inner, outer = (CodeLine(name, None, None, seconds) for name, seconds in (("a", 1.0), ("b", 2.0)))
    head = LineSamples("work", str(source), 1, 2.0, 2.0, own=2.0, waits={"lock": 0.5}, callees=(inner,))
    body = LineSamples("work", str(source), 2, 1.0, 1.0, own=0.5, waits={"lock": 0.5}, callees=(outer,))
    report = Report("stacks", "", sampled=SampledTime(3.0, 3.0, lines=(head, body)))
    sampled = with_source(report, Workload(("python", str(source)), "app", str(tmp_path)))
    assert sampled is not None
    assert [(line.line, line.main_wall) for line in sampled.lines] == [(2, 3.0)]
    assert sampled.lines[0].waits == {"lock": 1.0}
    assert [one.function for one in sampled.lines[0].callees] == ["b", "a"]
    assert sampled.lines[0].code is not None
    assert sampled.lines[0].code.text == "y = x + 1"
    last = LineSamples("work", str(source), 3, 2.5, 2.5)
    report = replace(report, sampled=SampledTime(5.5, 5.5, lines=(last, head, body)))
    sampled = with_source(report, Workload(("python", str(source)), "app", str(tmp_path)))
    assert sampled is not None
    assert [(line.line, line.main_wall) for line in sampled.lines] == [(3, 4.5), (2, 1.0)]
