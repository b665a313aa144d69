"""Takes what tells of a person or a machine out of text: paths, names that are known, tokens, addresses.

What is written instead tells its kind, and folders stay apart from each other: `/home/ann/net/mlp.py` becomes
`/folder-1/mlp.py`. A list of what was found is kept, as kinds and counts: a secret is never repeated in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from profkit.profilers import private_forms as forms
from profkit.profilers.private_forms import environment_variables

# Kinds of what is taken out, in the order in which they are told.
ENVIRONMENT = "environment variables"
COMMAND = "command line"
HOST = "host name"
ADDRESS = "addresses"
USER = "user name"
FOLDER = "working folder"
PATH = "paths"
PROCESS = "names of processes and threads"
DEVICE = "identities of devices"
OUTPUT = "output of the program"
MESSAGE = "messages"
TOKEN = "tokens and passwords"
OTHER = "texts of unknown meaning"
KINDS = (
    ENVIRONMENT,
    TOKEN,
    COMMAND,
    HOST,
    ADDRESS,
    USER,
    FOLDER,
    PATH,
    PROCESS,
    DEVICE,
    OUTPUT,
    MESSAGE,
    OTHER,
)

_WORD = re.compile(r"[A-Za-z_.-]+")
_SHORT = 2048  # characters: a longer text is hardly ever met twice, and would fill memory
LONG_ENOUGH = 6  # characters: shorter values ("1", "cuda", "gpu") stand in half of all kernel names
_TELLING = 12  # characters: shorter settings ("none", "9.0a", "13.0.2-1") are words like others
_OF_VENDORS = re.compile(r"NV_|NVIDIA_|CUDA_|NCCL_|LANG|LC_|TERM|LS_COLORS")
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASS|KEY|CRED|AUTH|COOKIE|SESSION|PRIVATE|WEBHOOK|DSN", re.IGNORECASE
)

_Counted = Callable[[str, str], str]  # notes a kind, and gives what is written instead


@dataclass(frozen=True)
class RemovedText:
    """How often something of one kind was taken out. `examples` are what was written instead of it."""

    kind: str
    count: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileLeftOut:
    """A file that a scrubbed copy does not have, why, and what would bring its content along."""

    name: str
    reason: str
    fix: str | None = None


class Redactor:
    """Learns what is private, and takes it out of text wherever it stands."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}  # what is private -> its kind
        self._strong: set[str] = set()  # of these, what is private in a kernel's name too
        self._folders: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}
        self._pattern: re.Pattern[str] | None = None
        self._cached = lru_cache(maxsize=65536)(self._redact)

    def learn(self, value: str | None, kind: str, *, strong: bool = False) -> None:
        """Take `value` out wherever it stands; too short or common a one is passed over."""
        value = (value or "").strip()
        if (
            len(value) < LONG_ENOUGH
            or value.lower() in _COMMON
            or value.isdigit()
            or forms.PUBLIC.match(value)
        ):
            return
        if kind in (COMMAND, ENVIRONMENT) and _WORD.fullmatch(value):
            return  # "memory", "gated_mlp": as good a name of a range or a section
        self._known.setdefault(value, kind)
        if strong:
            self._strong.add(value)
        self._pattern = None
        self._cached.cache_clear()

    def learn_environment(self, text: str) -> int:
        """Learn the values of `NAME=value` lines, of a JSON object, or of a list of either; how many there were."""
        count = 0
        for name, value in environment_variables(text):
            count += 1
            if name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER"):
                self.learn(value, USER, strong=True)
            elif name in ("HOSTNAME", "HOST", "COMPUTERNAME"):
                self.learn(value, HOST, strong=True)
            elif _SECRET_NAME.search(name) is not None and not value.startswith("/"):
                self.learn(value, TOKEN, strong=True)
            elif value.startswith(("/", "~")):
                for part in value.split(":"):
                    self.learn(part, PATH)
            elif len(value) >= _TELLING and not _OF_VENDORS.match(name):
                self.learn(value, ENVIRONMENT)
        return count

    def text(self, text: str) -> str:
        """`text` without what is private."""
        if not text:
            return text
        result, found = (self._cached if len(text) < _SHORT else self._redact)(text)
        for kind, count in found:
            self.note(kind, count)
        return result

    def kernel(self, name: str) -> str:
        """A kernel's name, which stays but for a secret that is known as one."""
        for value in self._strong:
            if value in name:
                name = name.replace(value, "removed")
                self.note(self._known[value])
        return name

    def note(self, kind: str, count: int = 1, example: str | None = None) -> None:
        """Remember that `count` things of `kind` were taken out; an `example` says what stands there now."""
        self._counts[kind] += count
        told = self._examples.setdefault(kind, [])
        if example is not None and example not in told and len(told) < 3:
            told.append(example)

    def removed(self) -> tuple[RemovedText, ...]:
        """What was taken out so far, kinds in their order."""
        known = [kind for kind in KINDS if self._counts[kind]]
        others = sorted(kind for kind in self._counts if kind not in KINDS)
        return tuple(
            RemovedText(kind, self._counts[kind], tuple(self._examples.get(kind, ())))
            for kind in (*known, *others)
        )

    def literals(self) -> Mapping[str, str]:
        """What is known to be private, longest first, with its kind."""
        return dict(sorted(self._known.items(), key=lambda item: -len(item[0])))

    def strong(self, value: str) -> bool:
        """Whether `value` is a secret that may not even stand in a kernel's name."""
        return value in self._strong

    def _redact(self, text: str) -> tuple[str, tuple[tuple[str, int], ...]]:
        counts: Counter[str] = Counter()

        def counted(kind: str, by: str) -> str:
            counts[kind] += 1
            return by

        if self._known:
            if self._pattern is None:
                self._pattern = re.compile("|".join(map(forms.literal_pattern, self.literals())))
            text = self._pattern.sub(lambda found: self._literal(found[0], counted), text)
        text = forms.TOKEN.sub(lambda _: counted(TOKEN, "<token>"), text)
        text = forms.ASSIGNED.sub(lambda found: f"{found[1]}={counted(TOKEN, '<removed>')}", text)
        text = forms.LOGIN.sub(lambda _: counted(TOKEN, "<removed>"), text)
        text = forms.UUID.sub(
            lambda found: found[0] if forms.is_zero(found[0]) else counted(DEVICE, forms.ZERO), text
        )
        text = forms.MAIL.sub(lambda _: counted(USER, "<mail>"), text)
        text = forms.IPV4.sub(lambda found: self._address(found[0], counted), text)
        text = forms.MAC.sub(lambda _: counted(ADDRESS, "<address>"), text)
        text = forms.PATH.sub(lambda found: self._path(found[0], counted), text)
        text = forms.WINDOWS.sub(lambda found: self._path(re.sub(r"\\+", "/", found[0]), counted), text)
        return text, tuple(counts.items())

    def _literal(self, found: str, counted: _Counted) -> str:
        kind = self._known.get(found)
        if found.startswith(("/", "~")):
            return counted(kind or PATH, self._folder(found)) if kind else self._path(found, counted)
        return counted(kind or OTHER, f"<{_WORDS.get(kind or OTHER, 'removed')}>")

    def _address(self, value: str, counted: _Counted) -> str:
        """A version (`580.159.4.1`) looks like an address too; the loopback and the empty one tell nothing."""
        return value if value.startswith(("127.", "0.")) else counted(ADDRESS, "<address>")

    def _path(self, path: str, counted: _Counted) -> str:
        if forms.PUBLIC.match(path) or path.startswith("/folder-"):
            return path
        package = forms.PACKAGES.fullmatch(path)
        if package is not None:
            return counted(PATH, f"/python{package[1]}")
        folder, _, name = path.rstrip("/").rpartition("/")
        # A name without a dot in it may be a folder's, and the last folder of two is most often a person's.
        whole = "." not in name.lstrip(".") or (path.count("/") < 3 and path[0] == "/")
        told = self._folder(path.rstrip("/")) if whole else f"{self._folder(folder)}/{name}"
        self.note(PATH, 0, told)
        return counted(PATH, told)

    def _folder(self, folder: str) -> str:
        return self._folders.setdefault(folder, f"/folder-{len(self._folders) + 1}")


_WORDS = {
    HOST: "host",
    USER: "user",
    COMMAND: "command",
    TOKEN: "token",
    ENVIRONMENT: "environment",
    PROCESS: "process",
    FOLDER: "folder",
    DEVICE: "device",
}
_COMMON = {
    "python",
    "python3",
    "pytorch",
    "triton",
    "nvidia",
    "cublas",
    "kernel",
    "profkit",
    "xterm-256color",
    "linux-gnu",
    "en_us.utf-8",
    "c.utf-8",
    "localhost",
    "production",
    "--backend",
    "--iterations",
    "--config",
}
