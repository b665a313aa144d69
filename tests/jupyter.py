"""JupyterLab for tests of notebooks: a server in a folder, and a notebook that a browser runs there."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.conftest import ROOT


def why_not() -> str | None:
    """Return why no notebook can be shown here; None where one can."""
    there = all(importlib.util.find_spec(name) for name in ("jupyterlab", "ipykernel"))
    return None if there else "jupyterlab is not installed (pip install jupyterlab)"


def write_notebook(path: Path, cells: Sequence[str]) -> None:
    """Write a notebook whose cells are these texts, and did not run."""
    made = [
        {
            "cell_type": "code",
            "id": f"c{n}",
            "source": text,
            "metadata": {},
            "outputs": [],
            "execution_count": None,
        }
        for n, text in enumerate(cells)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(json.dumps({"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))


def run_all(page: Any) -> None:
    """Run all cells of the notebook that `page` shows, once its kernel is there."""
    page.wait_for_function("window.jupyterapp?.shell.currentWidget?.context?.sessionContext?.session?.kernel")
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")


@contextlib.contextmanager
def server(folder: Path) -> Iterator[str]:
    """Serve the notebooks in `folder` without a password, and yield the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {"ServerApp.port": port, "ServerApp.root_dir": folder, "IdentityProvider.token": ""}
    options |= {"LabApp.expose_app_in_browser": True, "ServerApp.allow_root": True}
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", "--no-browser", *(f"--{k}={v}" for k, v in options.items())],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        | {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")},
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)
