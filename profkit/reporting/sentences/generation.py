"""Sentences about the answer of a model that cannot be tested. The model reads them, too."""

from __future__ import annotations

from profkit.reporting.sentences.formats import count_of, count_text
from profkit.reporting.sentences.table import SentenceTable

SENTENCES = SentenceTable(
    {
        "answer-declined": "The model declined to answer.",
        "answer-without-end": (
            "The code block does not end: the answer was cut off. Write a shorter file, and nothing else."
        ),
        "answer-cut-off": (
            "The answer was cut off before its code. Return the whole file in one block that begins with "
            "```python."
        ),
        "answer-without-code": (
            "The answer has no code block. Return the whole file in one block that begins with ```python."
        ),
    }
)


@SENTENCES.add("answer-without-function")
def answer_without_function(blocks: float, name: str) -> str:
    return (
        f"The answer has {count_of(blocks, 'code block')}, and none defines `{name}`. Return the "
        "whole file in one block."
    )


@SENTENCES.add("file-too-long")
def file_too_long(length: float, most: float) -> str:
    return f"The file has {count_text(length)} characters; at most {count_text(most)} are allowed."


@SENTENCES.add("file-without-function")
def file_without_function(name: str, names: str) -> str:
    return f"The file does not define `{name}`; it defines {names}."


@SENTENCES.add("same-file")
def same_file(number: float) -> str:
    return f"It is the same file as attempt {number:g}, whose result is shown above: change it."
