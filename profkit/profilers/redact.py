"""Takes what tells of a person or a machine out of text: paths, names that are known, tokens, addresses."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from profkit.profilers.private_forms import (
    IN_PATH,
    private_fields,
    replace_addresses,
    replace_path_lists,
    replace_relative,
    replace_shares,
)
from profkit.runtime.passes.secrets import TOKEN_FORM, hide_secrets, mask_command

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
PATH_FORM = re.compile(
    rf"(?:(?<![\w:/.\\~-])|(?<=-[ILoB]))(?:~[\w.-]{{0,40}}|file:(?://)?)?(?:/{IN_PATH}+){{2,}}/?"
)
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

_NAME = re.compile(r"[A-Za-z_][\w.-]{3,62}")
# What many machines and people are called, and what is a word of reports as well
_NO_NAMES = {
    "root", "user", "users", "ubuntu", "debian", "admin", "test", "tests", "local", "localhost", "host", "node",
    "none", "null", "true", "false", "self", "main", "data", "runner", "docker", "container", "build", "builder",
    "nobody", "work", "worker", "workspace", "guest", "shared", "public", "default", "device", "devices", "cuda",
    "model", "train", "python", "python3", "torch", "kernel", "memory", "stream", "process", "thread", "server",
    "client", "username", "hostname", "name", "runs", "jobs", "owner", "system", "time", "args", "string", "uint",
    "float", "char", "void", "project", "projects", "conda",
    "folder", "address", "removed", "token", "mail", "command", "environment", "vscode",
    "jovyan", "coder", "program", "function", "library", "trace", "step", "machine", "linux", "darwin",
}  # fmt: skip

_Counted = Callable[[str, str], str]  # notes a kind, and gives what is written instead


@dataclass(frozen=True)
class RemovedText:
    """How often something of one kind was taken out. `examples` are what was written instead of it."""

    kind: str
    count: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class RemainingText:
    """A kind of text that stays in a copy, and its files: a secret without a known form stays with it."""

    kind: str
    files: tuple[str, ...]


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
        self._names: dict[str, str] = {}  # of hosts and people, that are taken out as whole words -> kind
        self._name_pattern: re.Pattern[str] | None = None
        self._remaining: dict[str, dict[str, None]] = {}  # kind -> files
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

    def learn_name(self, value: str | None, kind: str, *, strong: bool = True) -> None:
        """Take the name of a host or a person out wherever it stands as a word; common and very short ones stay.

        `strong`: out of names of kernels, too.
        """
        value = (value or "").strip()
        names = [value, value.partition(".")[0]] if kind is HOST else [value]
        for name in names:
            if not _NAME.fullmatch(name) or name.lower() in _NO_NAMES or IPV4.fullmatch(name):
                continue
            self._names.setdefault(name, kind)
            if strong and len(name) >= LONG_ENOUGH:
                self._strong.add(name)
            self._name_pattern = None
            self._cached.cache_clear()

    def learn_text(self, text: str) -> None:
        """Learn the hosts, the people and the commands that fields and paths of the text name."""
        for what, value in private_fields(text):
            if what != "command":
                self.learn_name(value, HOST if what == "host" else USER, strong=what != "home")
            elif " " in value:
                self.learn_command(value.split())

    def learn_command(self, words: Sequence[str]) -> None:
        """Learn the words of a command, and more so its secrets."""
        for secret in mask_command(words)[1]:
            self.learn(secret, TOKEN, strong=True)
            if len(secret) < LONG_ENOUGH and _NAME.fullmatch(secret):
                self._names.setdefault(secret, TOKEN)
                self._name_pattern = None
        for word in words:
            self.learn(word, COMMAND)
            self.learn(word.partition("=")[2], COMMAND)

    def learn_environment(self, text: str) -> int:
        """Learn the values of `NAME=value` lines, of a JSON object, or of a list of either; how many there were."""
        count = 0
        for name, value in environment_variables(text):
            count += 1
            if name in ("USER", "LOGNAME", "USERNAME", "SUDO_USER"):
                self.learn_name(value, USER)
            elif name in ("HOSTNAME", "HOST", "COMPUTERNAME"):
                self.learn_name(value, HOST)
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
                self.note(self._known.get(value) or self._names[value])
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

    def note_remaining(self, file: str, kinds: Iterable[str]) -> None:
        """Remember what kinds of text stay in a file of the copy."""
        for kind in kinds:
            self._remaining.setdefault(kind, {})[file] = None

    def remaining(self) -> tuple[RemainingText, ...]:
        """What kinds of text stay, and where, in the order in which they were noted."""
        return tuple(RemainingText(kind, tuple(files)) for kind, files in self._remaining.items())

    def literals(self) -> Mapping[str, str]:
        """What is known to be private, longest first, with its kind."""
        known = {name: kind for name, kind in self._names.items() if len(name) >= LONG_ENOUGH} | self._known
        return dict(sorted(known.items(), key=lambda item: -len(item[0])))

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
                self._pattern = re.compile(
                    "|".join(map(literal_pattern, sorted(self._known, key=len, reverse=True)))
                )
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
        text = replace_path_lists(text, lambda path: self._path(path, counted))
        text = replace_shares(text, lambda share: self._path(share, counted))
        text = PATH_FORM.sub(lambda found: self._path(found[0], counted), text)
        text = WINDOWS.sub(lambda found: self._path(re.sub(r"[\\/]+", "/", found[0]), counted), text)
        text = replace_relative(text, lambda path: self._path(path, counted))
        if self._names:  # last: a path that a name stands in goes as a path
            text = self._whole_names().sub(lambda found: self._name(found[0], counted), text)
        return text, tuple(counts.items())

    def _whole_names(self) -> re.Pattern[str]:
        """What finds the names that are known: long ones anywhere, short ones as whole words."""
        if self._name_pattern is None:
            names = sorted(self._names, key=len, reverse=True)
            long = [re.escape(name) for name in names if len(name) >= LONG_ENOUGH]
            short = [
                rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])"
                for name in names
                if len(name) < LONG_ENOUGH
            ]
            self._name_pattern = re.compile("|".join((*long, *short)))
        return self._name_pattern

    def _name(self, name: str, counted: _Counted) -> str:
        kind = self._names[name]
        return counted(kind, f"<{_WORDS[kind]}>")

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
