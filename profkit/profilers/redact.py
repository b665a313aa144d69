"""Takes what tells of a person or a machine out of text: paths, names that are known, tokens, addresses."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from profkit.profilers.private_forms import IN_PATH, replace_addresses, replace_relative, replace_shares
from profkit.runtime.passes.secrets import TOKEN_FORM, hide_secrets

UUID = re.compile(r"\b(?:GPU-|MIG-)?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
ZERO = "00000000-0000-0000-0000-000000000000"
IPV4 = re.compile(r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.])")
MAC = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:])")
MAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
# NAME=value of an environment; the value reaches to the end of the word.
ASSIGNED = re.compile(
    r"\b([A-Za-z_]\w*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|CREDENTIALS?)\w*)=([^\s\"',;}]+)"
)
# Two parts at least, and nothing before it that makes it a part of a word, a ratio or a web address. A blank may
# stand inside a folder's name: only known folders are found then (as literals).
PATH_FORM = re.compile(rf"(?:(?<![\w:/.\\~-])|(?<=-[ILoB]))(?:~|file:(?://)?)?(?:/{IN_PATH}+){{2,}}/?")
WINDOWS = re.compile(
    r"(?<!\w)[A-Za-z]:\\{1,2}(?:[^\s\\\"'<>|:*?]+\\{1,2})+[^\s\\\"'<>|:*?]*"
    r"|(?<![\w/\\.-])[A-Za-z]:/{1,2}(?:[^\s/\\\"'<>|:*?]+[/\\]{1,2})+[^\s/\\\"'<>|:*?]*"
)
# What is the same on every machine tells nothing of this one.
PUBLIC = re.compile(
    r"/(?:usr/(?:lib|lib64|lib32|libexec|bin|sbin|include|share|local/cuda[\w.-]*)|etc/ssl|lib|lib64|bin|sbin|proc/self|proc/sys|dev|sys)/"
)
PACKAGES = re.compile(
    r".*?(/lib/python3\.\d+/(?:(?:site|dist)-packages/(?:torch|triton|numpy|nvidia|profkit|jax|jaxlib|cupy|scipy)/|"
    r"(?!site-packages/|dist-packages/)).*)"
)


def is_zero(uuid: str) -> bool:
    """Whether an identity is that of nothing: all zeros."""
    return not uuid.strip("GPUMI-0")


def literal_pattern(value: str) -> str:
    """A folder that is known reaches to the end of the path that begins with it, blanks inside it or not."""
    return re.escape(value) + (rf"(?:/{IN_PATH}*)*" if value.startswith(("/", "~")) else "")


def plain_release(text: str) -> str:
    """The number of an operating system's release or build; who made it names it behind that.

    >>> plain_release("6.8.0-14-acmecloud"), plain_release("#14acme1 SMP PREEMPT_DYNAMIC")
    ('6.8.0', '#14')
    """
    match = re.match(r"#?[\d.]*", text)
    return match[0].rstrip(".") if match is not None else ""


def environment_variables(text: str) -> Iterable[tuple[str, str]]:
    """The names and values of an environment however it is written down."""
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    except RecursionError:
        return
    if isinstance(content, dict):
        for name, value in content.items():
            if isinstance(value, str):
                yield str(name), value
            elif isinstance(value, (list, dict)):
                yield from environment_variables(json.dumps(value))
        return
    if isinstance(content, list):
        for entry in content:
            if isinstance(entry, str):
                yield from environment_variables(entry)
            elif isinstance(entry, dict):
                yield from environment_variables(json.dumps(entry))
        return
    for line in re.split(r"[\n\x00]|(?<=[^=]);(?=[A-Za-z_]\w*=)", text):
        name, mark, value = line.strip().partition("=")
        if mark and re.fullmatch(r"[A-Za-z_]\w*", name):
            yield name, value.strip("\"'")


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
        if len(value) < LONG_ENOUGH or value.lower() in _COMMON or value.isdigit() or PUBLIC.match(value):
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
        result, removed = (self._cached if len(text) < _SHORT else self._redact)(text)
        for kind, count in removed:
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
        examples = self._examples.setdefault(kind, [])
        if example is not None and example not in examples and len(examples) < 3:
            examples.append(example)

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
                self._pattern = re.compile("|".join(map(literal_pattern, self.literals())))
            text = self._pattern.sub(lambda found: self._literal(found[0], counted), text)
        text = hide_secrets(
            text, lambda secret: counted(TOKEN, "<token>" if TOKEN_FORM.fullmatch(secret) else "<removed>")
        )
        text = ASSIGNED.sub(lambda found: f"{found[1]}={counted(TOKEN, '<removed>')}", text)
        text = UUID.sub(lambda found: found[0] if is_zero(found[0]) else counted(DEVICE, ZERO), text)
        text = MAIL.sub(lambda _: counted(USER, "<mail>"), text)
        text = replace_addresses(
            text,
            lambda _: counted(ADDRESS, "<address>"),
            lambda _: counted(HOST, "<host>"),
            lambda path: self._path(path, counted),
        )
        text = IPV4.sub(lambda found: self._address(found[0], counted), text)
        text = MAC.sub(lambda _: counted(ADDRESS, "<address>"), text)
        text = replace_shares(text, lambda share: self._path(share, counted))
        text = PATH_FORM.sub(lambda found: self._path(found[0], counted), text)
        text = WINDOWS.sub(lambda found: self._path(re.sub(r"[\\/]+", "/", found[0]), counted), text)
        text = replace_relative(text, lambda path: self._path(path, counted))
        return text, tuple(counts.items())

    def _literal(self, literal: str, counted: _Counted) -> str:
        kind = self._known.get(literal)
        if literal.startswith(("/", "~")):
            return counted(kind or PATH, self._folder(literal)) if kind else self._path(literal, counted)
        return counted(kind or OTHER, f"<{_WORDS.get(kind or OTHER, 'removed')}>")

    def _address(self, value: str, counted: _Counted) -> str:
        """A version (`580.159.4.1`) looks like an address too; the loopback and the empty one tell nothing."""
        return value if value.startswith(("127.", "0.")) else counted(ADDRESS, "<address>")

    def _path(self, path: str, counted: _Counted) -> str:
        if PUBLIC.match(path) or path.startswith("/folder-"):
            return path
        package = PACKAGES.fullmatch(path)
        if package is not None:
            return counted(PATH, f"/python{package[1]}")
        folder, _, name = path.rstrip("/").rpartition("/")
        # A name without a dot in it may be a folder's, and the last folder of two is most often a person's.
        whole = "." not in name.lstrip(".") or (path.count("/") < 3 and path[0] == "/")
        shown = self._folder(path.rstrip("/")) if whole else f"{self._folder(folder)}/{name}"
        self.note(PATH, 0, shown)
        return counted(PATH, shown)

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
    "python", "python3", "pytorch", "triton", "nvidia", "cublas", "kernel", "profkit", "xterm-256color", "linux-gnu",
    "en_us.utf-8", "c.utf-8", "localhost", "production", "--backend", "--iterations", "--config",
}  # fmt: skip
