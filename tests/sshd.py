"""OpenSSH's own server on the loopback, as an ordinary user or root, with keys and settings of its own."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SERVERS = ("/usr/sbin/sshd", "/usr/local/sbin/sshd")
HOST = "there"


@dataclass(frozen=True)
class Server:
    """`program` stands for ssh, and knows the host `there`. Its store of files is in `home`."""

    program: Path
    home: Path
    process: subprocess.Popen[bytes]
    folder: Path


def why_no_sshd() -> str | None:
    """Why there can be no server here; None where there can be one."""
    if not any(map(os.path.exists, SERVERS)) and shutil.which("sshd") is None:
        return "sshd is not installed"
    if any(shutil.which(name) is None for name in ("ssh", "ssh-keygen")):
        return "ssh is not installed"
    return None


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that runs until the tests of a file are over."""
    if (reason := why_no_sshd()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("sshd")
    server = start_server(folder)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait(10)


def start_server(folder: Path) -> Server:
    """A server with its files in `folder`; what logs in has its cache there, too."""
    program = next((name for name in SERVERS if os.path.exists(name)), shutil.which("sshd"))
    assert program is not None
    folder.chmod(0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized_keys")
    home = folder / "home"
    home.mkdir()
    if os.geteuid() == 0:  # it wants an empty folder of root's
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    port = free_port()
    settings = f"""Port {port}
ListenAddress 127.0.0.1
HostKey {folder / "host"}
PidFile none
AuthorizedKeysFile {folder / "authorized_keys"}
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
SetEnv XDG_CACHE_HOME={home}
"""
    (folder / "sshd_config").write_text(settings)
    with (folder / "sshd.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "-D", "-e", "-f", folder / "sshd_config"],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    (folder / "ssh_config").write_text(
        f"""Host {HOST}
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder / "user"}
  IdentitiesOnly yes
  UserKnownHostsFile {folder / "known_hosts"}
"""
    )
    client = folder / "ssh"
    client.write_text(f'#!/bin/sh\nexec ssh -F "{folder / "ssh_config"}" "$@"\n')
    client.chmod(client.stat().st_mode | stat.S_IXUSR)
    _wait_for(port, process, folder / "sshd.log")
    return Server(client, home, process, folder)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    process.kill()
    pytest.skip(f"sshd does not start here: {log.read_text().strip()[-200:]}")
