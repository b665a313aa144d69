"""What `--on` says, as places."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence

from profkit.core.errors import UsageError
from profkit.execution.places import containers, modal, ray_cluster, slurm, ssh
from profkit.execution.places.place import ExecutionPlace

LOCAL = ExecutionPlace("local", "local")


def _shell_behind(words: Sequence[str]) -> ExecutionPlace:
    """A shell behind any prefix. Of its words only the program is shown: those behind it may hold a token."""
    return ExecutionPlace("prefix", f"prefix:{words[0]}", (*words, "sh"), inherits=True)


MAKERS: dict[str, Callable[[Sequence[str]], ExecutionPlace]] = {
    "ssh": ssh.shell_on,
    "docker": containers.shell_in_image,
    "kubectl": containers.shell_in_pod,
    "modal": modal.shell_in_container,
    "ray": ray_cluster.shell_in_actor,
    "srun": slurm.shell_in_task,
    "prefix": _shell_behind,
}
# An argument of a place may hold commas, too.
_COMMA = re.compile(rf",(?=\s*(?:local\s*(?:,|$)|(?:{'|'.join(MAKERS)}):))")


def parse_places(texts: Sequence[str]) -> tuple[ExecutionPlace, ...]:
    """The places of all `--on`, in their order; several in one text stand with commas between them.

    Raises UsageError for what is no place.
    """
    return tuple(_parse_place(part.strip()) for text in texts for part in _COMMA.split(text))


def _parse_place(text: str) -> ExecutionPlace:
    if text == "local":
        return LOCAL
    kind, _, rest = text.partition(":")
    if kind not in MAKERS:
        choices = (
            "local, ssh:HOST, docker:IMAGE, kubectl:POD, ray:ADDRESS, srun:ARGS, modal:GPU, prefix:WORDS"
        )
        host = text if re.fullmatch(r"[\w.@-]+", text) else "HOST"
        raise UsageError(f"there is no place {text!r}; there are {choices}", f"--on ssh:{host}")
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"the place {text!r} cannot be split into words: {error}") from error
    if not words:
        raise UsageError(f"the place {text!r} says nothing behind its colon", f"--on {kind}:SOMETHING")
    return MAKERS[kind](words)


def hide_prefixes(words: Sequence[str]) -> Iterator[str]:
    """The command line with each place by its title: the words of a prefix may hold a secret."""
    is_place = False
    for number, word in enumerate(words):
        if word == "--":
            yield from words[number:]
            return
        option, equals, value = word.partition("=")
        if is_place:
            yield ",".join(place.title for place in parse_places([word]))
        elif option == "--on" and equals:
            yield f"--on={','.join(place.title for place in parse_places([value]))}"
        else:
            yield word
        is_place = word == "--on"
