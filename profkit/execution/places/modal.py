"""`modal:GPU`: a shell in a container that Modal rents out by the second, with a GPU of that name.

`modal_shell` is the program that holds the container. Options stand before the name: `modal:--timeout 7200 H100`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence

from profkit.core.errors import UsageError
from profkit.execution.places.place import ExecutionPlace, Rent

SHELL = "profkit.execution.places.modal_shell"
START_SECONDS = 2400.0  # the image is built once, and Modal itself waits 21 minutes for a GPU
# Dollars a second: modal.com/pricing as github.com/api-evangelist/modal-labs noted it down (plans/, 1 July 2026).
# Processor and memory of a sandbox cost three times what is listed there (beam.cloud/blog/modal-pricing-explained).
PRICES = {
    "T4": 0.000164,
    "L4": 0.000222,
    "A100": 0.000583,
    "A100-80GB": 0.000694,
    "H100": 0.001097,
    "H200": 0.001261,
    "B200": 0.001736,
}
CORE_PRICE, GIB_PRICE = 3 * 0.0000131, 3 * 0.00000222
PRICE_SOURCE = "list prices of 2026-07-01, modal.com/pricing"
# What Modal is asked for so that no other kind comes: it may give an H200 for an H100, and 80 GB for an A100.
EXACT = {"A100": "A100-40GB", "H100": "H100!"}
MOST_GPUS = 8
# Of each option its usual value, its least and its most: seconds, physical cores, GiB.
OPTIONS = {"--timeout": (3600, 60, 86400), "--cpu": (4, 1, 64), "--memory": (32, 2, 336)}
IMAGE = "--image"


def shell_in_container(words: Sequence[str]) -> ExecutionPlace:
    """A shell in a container of its own, which ends with its connection. Raises UsageError for an unknown GPU."""
    *options, name = words
    if len(options) % 2:
        raise UsageError(f"modal:{' '.join(words)}: each option takes a value", "--on modal:GPU")
    values: dict[str, int] = {option: usual for option, (usual, _, _) in OPTIONS.items()}
    image = None
    for option, value in zip(options[::2], options[1::2], strict=True):
        if option == IMAGE:
            image = value
        else:
            values[option] = _read_number(option, value)
    gpu, count = _read_gpu(name)
    limit, cores, memory = (values[option] for option in OPTIONS)
    request = {
        "gpu": EXACT.get(gpu, gpu) + (f":{count}" if count > 1 else ""),
        "device": gpu,
        "count": count,
        "timeout": limit,
        "cores": cores,
        "memory": memory << 10,  # MiB
        "image": image,
    }
    title = f"modal:{' '.join(words)}"
    return ExecutionPlace(
        "modal",
        title,
        (sys.executable, "-m", SHELL, json.dumps(request), "sh"),
        START_SECONDS,
        has_own_client=True,
        try_it=f"profkit doctor --on 'modal:{name}'",
        rent=Rent(count * PRICES[gpu] + cores * CORE_PRICE + memory * GIB_PRICE, limit, PRICE_SOURCE),
    )


def _read_gpu(name: str) -> tuple[str, int]:
    """`H100` or `H100:2`."""
    match = re.fullmatch(r"([^:]+)(?::(\d+))?", name)
    if match is None or match[1] not in PRICES:
        raise UsageError(f"modal:{name} is no GPU; there are {', '.join(PRICES)}", "--on modal:H100")
    count = int(match[2] or 1)
    if not 1 <= count <= MOST_GPUS:
        raise UsageError(f"modal:{name}: a container has 1 to {MOST_GPUS} GPUs", f"--on modal:{match[1]}:2")
    return match[1], count


def _read_number(option: str, value: str) -> int:
    if option not in OPTIONS:
        names = ", ".join([*OPTIONS, IMAGE])
        raise UsageError(
            f"modal has no option {option}; there are {names}", "--on 'modal:--timeout 7200 H100'"
        )
    _, least, most = OPTIONS[option]
    if not value.isdecimal() or not least <= int(value) <= most:
        raise UsageError(f"{option} {value} of modal: a whole number from {least} to {most} is meant")
    return int(value)
