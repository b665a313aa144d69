"""What is taken from an answer, and what the model is told where nothing can be."""

from __future__ import annotations

import pytest

from profkit.generation.prompt import find_code
from profkit.reporting.facts import fact_text

FUNCTION, FILE = "relu_kernel_impl", "relu_attempt_1.py"
KERNEL = "import torch\n\ndef relu_kernel_impl(x):\n    return torch.clamp(x, min=0)\n"
SLOWER = KERNEL.replace("clamp(x, min=0)", "where(x > 0, x, 0)")


def fenced(code: str, language: str = "python", fence: str = "```") -> str:
    return f"{fence}{language}\n{code}{fence}\n"


@pytest.mark.parametrize(
    "answer",
    [
        fenced(KERNEL),
        f"Here it is:\n\n{fenced(KERNEL)}\nIt clamps.",
        fenced(KERNEL, "py"),
        fenced(KERNEL, ""),
        fenced(KERNEL, fence="~~~"),
        fenced(KERNEL, fence="````"),
        fenced(KERNEL).replace("\n", "\r\n"),
        "1. The file:\n\n" + "".join(f"   {line}\n" for line in fenced(KERNEL).splitlines()),
        KERNEL,
        f"<think>\n{fenced(SLOWER)}no, slower\n</think>\n{fenced(KERNEL)}",
        fenced("pip install torch\n", "bash") + fenced(KERNEL) + fenced("print(1)\n"),
        f"{fenced(SLOWER)}Better:\n{fenced(KERNEL)}",
        fenced(KERNEL) + "Use it so:\n" + fenced("y = relu_kernel_impl(x)\n"),
        fenced(KERNEL).rstrip("`\n"),  # all of the code is there: only the fence lacks
    ],
)
def test_the_one_kernel_in_an_answer_is_taken_unchanged(answer: str) -> None:
    found = find_code(answer, FUNCTION, FILE)
    assert (found.fault, found.code, found.problem) == ("", KERNEL, None)


@pytest.mark.parametrize(
    ("answer", "cut", "said"),
    [
        ("", False, "has no code block"),
        ("I would clamp it at zero.", False, "has no code block"),
        ("I would", True, "cut off before its code"),
        (fenced(KERNEL).partition(", min")[0], True, "does not end"),
        (fenced(KERNEL).partition(", min")[0], False, "does not end"),
        (fenced("x = 1\n") + fenced("y = 2\n"), False, "2 code blocks, and none defines `relu_kernel_impl`"),
        (f"<think>{fenced(KERNEL)}", False, "has no code block"),
        (fenced("def relu(x): pass\n"), False, "1 code block, and none defines"),
        (fenced(KERNEL + "#" * 500_000 + "\n"), False, "characters"),
    ],
)
def test_an_answer_without_a_whole_kernel_is_told_what_lacks(answer: str, cut: bool, said: str) -> None:
    found = find_code(answer, FUNCTION, FILE, cut=cut)
    assert (found.fault, found.code) == ("no-code", "")
    assert said in fact_text(found.problem)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import torch\n\ndef relu_kernel_impl(x:\n    return x\n", "relu_attempt_1.py, line 3"),
        ("relu_kernel_impl\ndef relu(x): pass\n", "does not define `relu_kernel_impl`; it defines `relu`"),
        ("relu_kernel_impl\n" + "(" * 500 + "\n", "relu_attempt_1.py, line 2"),
        ("relu_kernel_impl = 1\0\n", "null bytes"),  # which has no line; in 3.11.4 it became a SyntaxError
        (
            "relu_kernel_impl = " + "-" * 90_000 + "1\n",
            "relu_attempt_1.py is no Python: it is nested too deeply",
        ),
        ("relu_kernel_impl = x" + ".y" * 20_000 + "()\n", "relu_attempt_1.py"),
        ("@x" + ".y" * 500 + "()\ndef relu_kernel_impl(x): pass\n", "relu_attempt_1.py is no Python"),
    ],
)
def test_code_that_cannot_be_loaded_is_kept_with_its_line(code: str, said: str) -> None:
    found = find_code(fenced(code), FUNCTION, FILE)
    assert (found.fault, found.code) == ("load-error", code)
    assert said in fact_text(found.problem)
