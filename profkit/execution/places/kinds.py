"""Parse the values of `--on` to places: this machine, or a command prefix that starts a shell somewhere else."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from profkit.core.errors import UsageError


@dataclass(frozen=True)
class ExecutionPlace:
    """One place. `start` is the command that starts a shell there, which reads from its standard input.

    The shell is always the last word, `sh` alone, so that no word is quoted for somebody's login shell. `start`
    is empty for `local`. `title` is what people and results call it. `patience`: seconds until it answers; a
    queue may let it wait. `inherits`: what runs there gets this process's environment, so that secrets are taken
    out of it first. `gives_devices`: whoever starts the shell says which GPUs it sees. `try_it` is a line that
    shows whether it can be reached. `is_rented`: it costs money by the second, so its client is given the time to
    end it. `queues`: others may be served first, for hours; it leaves the queue if it is asked to end, and not if
    it is killed. `reason_mark`: a text in the line that says why it ended, if that is not the last.
    """

    kind: str
    title: str
    start: tuple[str, ...] = ()
    patience: float = 60.0
    inherits: bool = False
    gives_devices: bool = False
    try_it: str | None = None
    is_rented: bool = False
    queues: bool = False
    reason_mark: str = ""

    @property
    def is_local(self) -> bool:
        """Return whether this is the machine that profkit was called on, without anything between."""
        return self.kind == "local"

    def refuse_devices(self) -> None:
        """Raise UsageError if GPUs are named for a place that is given its own."""
        if self.gives_devices:
            raise UsageError(
                f"{self.title} is given its GPUs there, and --gpus can name none",
                f"leave out --gpus, and name one place for each GPU: --on {shlex.quote(f'{self.title},{self.title}')}",
            )


LOCAL = ExecutionPlace("local", "local")


# ---------------------------------------------------------------- ssh, containers, prefix

# A question for a password would wait for ever. Nobody's agent, display or ports are lent to the other machine. A line
# that is dead is noticed within a minute. A connection that others share is used where the user has one, and never
# made here: it would end with the first worker that is killed, and all others with it.
SSH_OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": "20",
    "ServerAliveInterval": "15",
    "ServerAliveCountMax": "3",
    "ControlMaster": "no",
    "ForwardAgent": "no",
    "ForwardX11": "no",
    "ClearAllForwardings": "yes",
    "PermitLocalCommand": "no",
    "RemoteCommand": "none",
}
SSH_PROGRAM = "PROFKIT_SSH"
VOLUME = "profkit-cache"  # keeps profkit from one container to the next
CACHE = "/profkit-cache"
PULL_SECONDS = 1800.0  # an image with CUDA is some GB
POD_SECONDS = 120.0


def _shell_by_ssh(words: Sequence[str]) -> ExecutionPlace:
    """Make a place of `HOST`, `USER@HOST` or `//USER@HOST:PORT`, by OpenSSH with the user's configuration."""
    host = f"ssh:{words[0]}" if words[0].startswith("//") else words[0]
    if len(words) != 1 or host.startswith("-"):
        raise UsageError(
            f"ssh:{' '.join(words)} is not one host",
            "--on ssh:HOST, with its options in ~/.ssh/config; or --on 'prefix:ssh OPTIONS HOST'",
        )
    program = os.environ.get(SSH_PROGRAM) or "ssh"
    options = [word for name, value in SSH_OPTIONS.items() for word in ("-o", f"{name}={value}")]
    start = (program, "-T", *options, "--", host, "sh")
    return ExecutionPlace(
        "ssh", f"ssh:{words[0]}", start, try_it=f"{shlex.quote(program)} {shlex.quote(host)} true"
    )


def _shell_in_image(words: Sequence[str]) -> ExecutionPlace:
    """Make a shell in a new container that ends with its standard input: a client that is killed leaves none."""
    run = ("docker", "run", "-i", "--rm", "--init", "-v", f"{VOLUME}:{CACHE}", "-e", f"PROFKIT_CACHE={CACHE}")
    return ExecutionPlace(
        "docker",
        f"docker:{words[-1]}",
        (*run, *words, "sh"),
        PULL_SECONDS,
        try_it=f"docker run --rm {shlex.join(words)} python3 -V",
        reason_mark="docker: ",  # a hint at its help comes after it
    )


def _shell_in_pod(words: Sequence[str]) -> ExecutionPlace:
    return ExecutionPlace(
        "kubectl",
        f"kubectl:{words[-1]}",
        ("kubectl", "exec", "-i", *words, "--", "sh"),
        POD_SECONDS,
        try_it=f"kubectl exec {shlex.join(words)} -- python3 -V",
    )


def _shell_behind(words: Sequence[str]) -> ExecutionPlace:
    """Make a shell behind any prefix; only its program is shown, as the other words may hold a token."""
    return ExecutionPlace("prefix", f"prefix:{words[0]}", (*words, "sh"), inherits=True)


# ---------------------------------------------------------------- Slurm

QUEUE_SECONDS = 7 * 86400.0  # a queue is as long as it is; Ctrl-C ends the wait


def _shell_in_task(words: Sequence[str]) -> ExecutionPlace:
    """Make a shell in a task of Slurm, which waits in the queue. Slurm hands the environment on, so it inherits."""
    return ExecutionPlace(
        "srun",
        f"srun:{' '.join(words)}",
        ("srun", "--job-name=profkit", "--ntasks=1", "--unbuffered", *words, "sh"),
        QUEUE_SECONDS,
        inherits=True,
        try_it=f"srun {shlex.join(words)} python3 -V",
        gives_devices=True,
        queues=True,
        reason_mark=" CANCELLED AT ",
    )


# ---------------------------------------------------------------- Modal and Ray: by programs of ours

MODAL_SHELL = "profkit.execution.places.modal_shell"
MODAL_SECONDS = 2400.0  # the image is built once, and Modal itself waits 21 minutes for a GPU
RAY_SHELL = Path(__file__).with_name("ray_shell.py")
RAY_PYTHON = "PROFKIT_RAY_PYTHON"  # one that has Ray, where this one has not
RAY_SECONDS = 180.0  # to connect, for what others use, and for a worker process to start


class _Options(argparse.ArgumentParser):
    """Options that stand before a name; an error in them is a UsageError."""

    def __init__(self, kind: str, example: str) -> None:
        super().__init__(prog=kind, add_help=False, allow_abbrev=False)
        self._example = example

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}", f"--on {shlex.quote(self._example)}")


def _shell_at_modal(words: Sequence[str]) -> ExecutionPlace:
    """Make a shell in a container with a GPU that Modal rents out by the second; it ends with its connection."""
    parser = _Options("modal", "modal:--timeout 7200 --image NAME H100:2")
    parser.add_argument("--timeout", type=int, default=3600)  # seconds
    parser.add_argument("--image")
    parser.add_argument("gpu")
    request = vars(parser.parse_args(list(words)))
    if re.fullmatch(r"[A-Z][\w-]*(:[1-8])?", request["gpu"]) is None or request["timeout"] < 1:
        parser.error(f"{' '.join(words)!r} is no GPU")
    return ExecutionPlace(
        "modal",
        f"modal:{' '.join(words)}",
        (sys.executable, "-m", MODAL_SHELL, json.dumps(request), "sh"),
        MODAL_SECONDS,
        gives_devices=True,
        try_it=f"profkit doctor --on {shlex.quote('modal:' + request['gpu'])}",
        is_rented=True,
    )


def _shell_in_actor(words: Sequence[str]) -> ExecutionPlace:
    """Make a shell in an actor of a Ray cluster, with the GPUs that Ray gives it."""
    parser = _Options("ray", "ray:--gpus 1 --accelerator H100 HOST:6379")
    parser.add_argument("--gpus", type=float)
    parser.add_argument("--accelerator")
    parser.add_argument("address")
    request = vars(parser.parse_args(list(words)))
    address = request["address"]
    if address != "auto" and not address.removeprefix("ray://").rpartition(":")[2].isdigit():
        parser.error(f"{address!r} is not an address of a cluster: auto, HOST:PORT or ray://HOST:PORT")
    kind, gpus = request["accelerator"], request["gpus"]
    gpus = gpus if gpus is not None else 1 if kind else 0
    options = {"num_gpus": gpus, "num_cpus": 0, "accelerator_type": kind}
    python = os.environ.get(RAY_PYTHON) or sys.executable
    return ExecutionPlace(
        "ray",
        f"ray:{' '.join(words)}",
        (python, str(RAY_SHELL), json.dumps({"address": address, "options": options}), "sh"),
        RAY_SECONDS,
        gives_devices=True,
        try_it=shlex.join((python, "-c", f"import ray; ray.init({address!r})")),
    )


# ---------------------------------------------------------------- what was typed

MAKERS: dict[str, Callable[[Sequence[str]], ExecutionPlace]] = {
    "ssh": _shell_by_ssh,
    "docker": _shell_in_image,
    "kubectl": _shell_in_pod,
    "modal": _shell_at_modal,
    "ray": _shell_in_actor,
    "srun": _shell_in_task,
    "prefix": _shell_behind,
}
# An argument of a place may hold commas, too.
_COMMA = re.compile(rf",(?=\s*(?:local\s*(?:,|$)|(?:{'|'.join(MAKERS)}):))")


def parse_places(texts: Sequence[str]) -> tuple[ExecutionPlace, ...]:
    """Parse all `--on` to places, in their order; several in one text are separated by commas.

    Raises UsageError for anything else.
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
        raise UsageError(
            f"there is no place {text!r}; there are {choices}", f"--on {shlex.quote('ssh:' + host)}"
        )
    try:
        words = shlex.split(rest)
    except ValueError as error:
        raise UsageError(f"the place {text!r} cannot be split into words: {error}") from error
    if not words:
        raise UsageError(f"the place {text!r} says nothing behind its colon", f"--on {kind}:SOMETHING")
    return MAKERS[kind](words)


def hide_prefixes(words: Sequence[str], on: Sequence[str]) -> Iterator[str]:
    """Yield the command line with each place of `on` by its title: the words of a prefix may hold a secret."""
    titles = {text: ",".join(place.title for place in parse_places([text])) for text in on}
    for word in words:
        typed = next((text for text in titles if word in (text, f"--on={text}")), "")
        yield word.replace(typed, titles[typed]) if typed else word


# ---------------------------------------------------------------- what a place says


def words_of(title: str, message: object, fix: object) -> tuple[str, str | None]:
    """Return a fault that a place reports, and its fix, marked as that place's words."""
    text = quote_lines(str(message)[:4000]) if message else "it failed, and said no reason"
    line = " ".join(str(fix)[:2000].split()) if fix else ""
    return f"{title}: {text}", f"{line}   (said by {title})" if line else None


def quote_lines(text: str) -> str:
    """Prefix the further lines of a place's text, so that none can pass for a line of profkit's, such as `fix:`."""
    return "\n  | ".join(text.splitlines() or [""])
