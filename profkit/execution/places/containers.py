"""`docker:IMAGE`, a container for each call, and `kubectl:POD`, a shell in a pod that runs already.

Both take the options of `docker run` and `kubectl exec` before the name.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from profkit.execution.places.place import ExecutionPlace

VOLUME = "profkit-cache"  # keeps what was sent from one container to the next
CACHE = "/profkit-cache"
PULL_SECONDS = 1800.0  # an image with CUDA is some GB
POD_SECONDS = 120.0


def shell_in_image(words: Sequence[str]) -> ExecutionPlace:
    """A shell in a new container, which ends when its standard input does: a client that is killed leaves none."""
    run = ("docker", "run", "-i", "--rm", "--init", "-v", f"{VOLUME}:{CACHE}", "-e", f"PROFKIT_CACHE={CACHE}")
    return ExecutionPlace(
        "docker",
        f"docker:{words[-1]}",
        (*run, *words, "sh"),
        PULL_SECONDS,
        try_it=f"docker run --rm {shlex.join(words)} python3 -V",
        reason_mark="docker: ",  # a hint at its help comes after it
    )


def shell_in_pod(words: Sequence[str]) -> ExecutionPlace:
    """A shell in a pod."""
    return ExecutionPlace(
        "kubectl",
        f"kubectl:{words[-1]}",
        ("kubectl", "exec", "-i", *words, "--", "sh"),
        POD_SECONDS,
        try_it=f"kubectl exec {shlex.join(words)} -- python3 -V",
    )
