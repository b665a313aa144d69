"""Answers that were given already, by what was asked: whoever goes on after an interruption pays nothing twice."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from profkit.core.files.regular import read_bounded_text
from profkit.core.whole_files import replacing
from profkit.generation.clients.client import Answer, Message, ModelClient

VERSION = 1  # of the files


class StoredAnswers:
    """A client around another one that keeps its answers in a folder, one file each.

    An answer is known by the model, where it is served, how it is asked, and the whole conversation. Who asks the same
    several times gets several answers, and after an interruption the same ones in the same order.
    """

    def __init__(self, client: ModelClient, folder: Path, asked_with: Mapping[str, object]) -> None:
        self._client, self._folder, self._asked_with = client, folder, dict(asked_with)
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def provider(self) -> str:
        """Of the client that asks."""
        return self._client.provider

    @property
    def model(self) -> str:
        """Of the client that asks."""
        return self._client.model

    def ask(self, messages: Sequence[Message], report: Callable[[str], None] = lambda _: None) -> Answer:
        """The answer that is there, or the one that the model gives; see `ModelClient`."""
        path = self._path(messages)
        stored = _read(path)
        if stored is not None:
            report("stored answer")
            return stored
        answer = self._client.ask(messages, report)
        with contextlib.suppress(OSError):  # a full disk costs this answer's second use, and not the answer
            self._folder.mkdir(parents=True, exist_ok=True)
            document = {"version": VERSION, "asked_with": self._asked_with, "answer": asdict(answer)}
            with replacing(path) as temporary:
                temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        return answer

    def close(self) -> None:
        """Ends what is being asked, by whichever thread."""
        self._client.close()

    def _path(self, messages: Sequence[Message]) -> Path:
        asked = [self.provider, self.model, self._asked_with, [[m.role, m.text] for m in messages]]
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        with self._lock:
            self._asked[digest] += 1
            number = self._asked[digest]
        return self._folder / (f"{digest}.json" if number == 1 else f"{digest}-{number}.json")


def _read(path: Path) -> Answer | None:
    """A stored answer, which took no time; None where there is none, or its file is damaged."""
    try:
        document = json.loads(read_bounded_text(path))
        answer = Answer(**document["answer"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    whole = document.get("version") == VERSION and isinstance(answer.text, str)
    return replace(answer, seconds=0.0, retries=0, stored=True) if whole else None
