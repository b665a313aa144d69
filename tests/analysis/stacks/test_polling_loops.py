"""Which loops of C++ and Rust only sleep and look again, by their text."""

from __future__ import annotations

import pytest

from profkit.analysis.stacks.polling_loops import looks_again

POLLING = {
    "a full queue": (
        "while (items_.size() >= capacity_) {\n  lock.unlock();\n"
        "  std::this_thread::sleep_for(ms(1)); // <\n  lock.lock();\n}"
    ),
    "one line": "while (!done.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1)); // <",
    "in braces": "void beat() { }\nwhile (!done) { usleep(1000); } // <",
    "an endless loop that leaves": "for (;;) {\n  if (ready()) break;\n  usleep(500); // <\n}",
    "under a lock": "while (true) {\n  {\n    std::lock_guard<std::mutex> lock(m);\n"
    "    if (!queue.empty()) {\n      return;\n    }\n  }\n  usleep(500); // <\n}",
    "do": "do {\n  usleep(500); // <\n} while (!flag);",
    "Rust": "while !done.load(Ordering::Acquire) {\n    thread::sleep(Duration::from_millis(1)); // <\n}",
    "Rust's loop": "loop {\n    if queue.lock().unwrap().len() < 8 {\n        break;\n"
    "    }\n    thread::sleep(pause); // <\n}",
}
OTHERS = {
    "frames": "while (running) {\n  draw();\n  usleep(16000); // <\n}",
    "a time": "while (clock::now() < next) {\n  usleep(100); // <\n}",
    "a number of times": "while (left-- > 0) {\n  usleep(100); // <\n}",
    "for each item": "for (int i = 0; i < n; ++i) {\n  usleep(100); // <\n}",
    "a sleep that was interrupted": "while (nanosleep(&rest, &rest) == -1); // <",
    "no loop": "void pause() {\n  usleep(100); // <\n}",
    "after a loop": "while (busy()) {\n  work();\n}\nusleep(100); // <",
    "an endless loop that works": "for (;;) {\n  send(beat);\n  usleep(500); // <\n}",
    "an endless loop without an end": "for (;;) {\n  usleep(500); // <\n}",
    "retries": "while (!connected) {\n  connected = connect();\n  usleep(500); // <\n}",
}


def line_of(text: str) -> tuple[list[str], int]:
    lines = text.split("\n")
    at = next(number for number, one in enumerate(lines, start=1) if "// <" in one)
    return [one.replace("// <", "").rstrip() for one in lines], at


@pytest.mark.parametrize("name", POLLING)
def test_a_loop_that_only_sleeps_and_looks_is_polling(name: str) -> None:
    assert looks_again(*line_of(POLLING[name]))


@pytest.mark.parametrize("name", OTHERS)
def test_a_loop_that_does_anything_else_is_not(name: str) -> None:
    assert not looks_again(*line_of(OTHERS[name]))
