"""Lines of a compiled program by symbol and offset."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from profkit.backends.source_lines import source_places

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
    lines = {key[0]: (place[1], place[2]) for key, place in found.items()}
    assert lines == {
        name: (str(source), line) for name, line in {"work": 5, "twice<int>": 3, "main": 8}.items()
    }
