"""Removes what identifies a person or a machine from text and JSON: commands, paths, hosts, tokens.

Secrets have forms of their own: `profkit.runtime.passes.secrets`. What has no form, and no field names,
stays.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from profkit.runtime.passes.secrets import TOKEN_FORM, hide_secrets, mask_command
from profkit.runtime.passes.shown_command import shown_command

# Kinds of removed text, in the order in which they are listed.
TOKEN = "tokens and passwords"
COMMAND = "command line"
HOST = "host name"
ADDRESS = "addresses"
USER = "user name"
FOLDER = "working folder"
PATH = "paths"
PROCESS = "names of processes and threads"
DEVICE = "identities of devices"
OUTPUT = "output of the program"
KINDS = (TOKEN, COMMAND, HOST, ADDRESS, USER, FOLDER, PATH, PROCESS, DEVICE, OUTPUT)

UUID = re.compile(r"\b(?:GPU-|MIG-)?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
ZERO = "00000000-0000-0000-0000-000000000000"
_MAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_IPV4 = re.compile(r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.])")
_MAC = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:])")
# Addresses of the internet, of a site and of a link: `dead::beef` may be a name of C++
_IPV6 = re.compile(
    r"(?<![\w:.])(?:[23][0-9a-f]{3}|f[cd][0-9a-f]{2}|fe[89ab][0-9a-f]|ff0[0-9a-f]|64):[0-9a-f:.]{2,40}(?:%\w+)?(?![\w:])",
    re.IGNORECASE,
)
# An address of the web, of a store (s3://, gs://) or of a database. What follows a public host is public, too.
_URL = re.compile(
    r"\b([A-Za-z][A-Za-z0-9+.-]{1,15})://((?:<removed>@)?(?:\[[0-9A-Fa-f:.%]+\])?[^\s\"'`<>\\|(){}\[\],;]*)"
)
_PUBLIC_HOST = re.compile(
    r"(?:[\w-]+\.)*(?:pytorch\.org|nvidia\.com|github\.com|python\.org|kernel\.org|llvm\.org|w3\.org|huggingface\.co|"
    r"arxiv\.org|perfetto\.dev|speedscope\.app|apple\.com|intel\.com|localhost|127\.0\.0\.1)(?::\d+)?(?=[/?#]|$)"
)
_INTERNAL = re.compile(
    r"(?<![\w.@/-])(?:(?=[\w.-]*[\d-])(?:[a-z0-9][\w-]*\.)+(?:internal|local|private|cluster|home)"
    r"|(?:[a-z0-9][\w-]*\.)+(?:lan|corp|intranet|localdomain|localnet|home\.arpa|svc\.cluster\.local)"
    r"|ip-\d{1,3}(?:-\d{1,3}){3}(?:\.[\w.-]+)?)(?![\w-]|\.\w|\()",
    re.IGNORECASE,
)
_INTERNAL_END = re.compile(
    r"\.(?:internal|local|private|cluster|home|lan|corp|intranet)|\bip-\d", re.IGNORECASE
)

_IN_PATH = r"[^\s/\\\"'`<>|:;,*?(){}\[\]\x00-\x1f=]"
# Two parts at least, and nothing before it that makes it a part of a word, a ratio or a web address. A blank may
# stand inside a folder's name: only known folders are found then (as literals).
_ABSOLUTE = re.compile(
    rf"(?:(?<![\w:/.\\~-])|(?<=-[ILoB]))(?:~[\w.-]{{0,40}}|file:(?://)?)?(?:/{_IN_PATH}+){{2,}}/?"
)
# host:/path, as of NFS and scp; more than a letter, which would be a drive
_REMOTE_PATH = re.compile(
    rf"(?<![\w/:.@-])((?:[\w.+-]+@)?[A-Za-z][\w.-]+):((?:/{_IN_PATH}+){{2,}})", re.ASCII
)
_LABELS = re.compile(
    r"(?i)(?:file|path|folder|dir|cwd|error|warning|note|in|at|from|to|of|see|open|log|fix|exec|cmd):"
)
_PATH_LIST = re.compile(
    rf"(?<![\w:/.\\~-]):?(?:/{_IN_PATH}+)+(?::+(?:/{_IN_PATH}+)+)+|(?<=[=\"'\s]):(?:/{_IN_PATH}+){{2,}}"
)
# \\server\share, also with each backslash doubled; //server/share/folder; C:\folder
_SHARE = re.compile(
    r"(?<![\w\\])(?:\\\\[\w.$-]+(?:\\[^\s\\/\"'<>|:*?]+)+|\\{4}[\w.$-]+(?:\\\\[^\s\\/\"'<>|:*?]+)+)\\{0,2}"
    rf"|(?<![\w:/.\\~-])//[A-Za-z][\w.-]+(?:/{_IN_PATH}+){{2,}}"
)
_WINDOWS = re.compile(
    r"(?<!\w)[A-Za-z]:\\{1,2}(?:[^\s\\\"'<>|:*?]+\\{1,2})+[^\s\\\"'<>|:*?]*"
    r"|(?<![\w/\\.-])[A-Za-z]:/{1,2}(?:[^\s/\\\"'<>|:*?]+[/\\]{1,2})+[^\s/\\\"'<>|:*?]*"
)
# ../ann/x.py; and a/b/c.py, where its first part is not that of a library that everybody has
_RELATIVE = re.compile(
    rf"(?<![\w/.\\~-])\.{{1,2}}(?:/{_IN_PATH}+){{2,}}|(?<![\w/.\\~-])\.\.(?:/{_IN_PATH}+)+"
)
_BARE = re.compile(
    r"(?<![\w/.\\:~@+<-])(?:[A-Za-z0-9_@+][\w.@+-]*/){2,}[\w@+-][\w.@+-]*?\.(?:py|pyx|ipynb|c|cc|cpp|cxx|cu|cuh|h|hpp|rs|go|so|bin|"
    r"pt|pth|ckpt|safetensors|gguf|json|jsonl|ya?ml|toml|txt|csv|parquet|h5|npz|npy|onnx|sh|log|sqlite|db|pkl)(?![\w/])"
)
_LIBRARIES = re.compile(
    r"(?:artifacts|logs|profiles|reports|torch|torchvision|torchaudio|aten|ATen|c10|caffe2|csrc|triton|numpy|nvidia|cuda|"
    r"profkit|jax|jaxlib|xla|cupy|scipy|python3?(?:\.\d+)?|lib|lib64|include|third_party|cutlass|thrust|cub|transformers|"
    r"site-packages|dist-packages|sysdeps|nptl|elf|kernel|arch|drivers|net|mm|fs|benchmark|Objects|Python|Modules)/"
)
# What is the same on every machine tells nothing of this one.
_PUBLIC = re.compile(
    r"/(?:usr/(?:lib|lib64|lib32|libexec|bin|sbin|include|share|local/cuda[\w.-]*)|etc/ssl|lib|lib64|bin|sbin|proc/self|proc/sys|dev|sys)/"
)
_PACKAGES = re.compile(
    r".*?(/lib/python3\.\d+/(?:(?:site|dist)-packages/(?:torch|triton|numpy|nvidia|profkit|jax|jaxlib|cupy|scipy)/|"
    r"(?!site-packages/|dist-packages/)).*)"
)

# Fields that name a host, a person or a command, in JSON, in Python's and in lines of `name : value`
_FIELD = re.compile(
    r"(?<![A-Za-z])(?P<name>host(?:_?name)?|node_?name|machine_?name|computer_?name|user(?:_?name)?|login(?:_?name)?|owner|"
    r"cmd_?line|command_?line|command|argv)(?:\\?[\"'])?\s{0,4}[:=]\s{0,4}"
    r"(?:\\?[\"'](?P<quoted>(?:[^\"'\\\n]|\\[^\"'\n]){1,4096})\\?[\"']|(?P<plain>[^\s\"',;{}\[\]()<>]{1,256}))",
    re.IGNORECASE,
)
_HOME = re.compile(
    r"(?:/(?:export/|mnt/|data/)?(?:home|Users)/|[A-Za-z]:[\\/]{1,4}Users[\\/]{1,4})([A-Za-z][\w.-]{1,63})"
)
_AT_HOST = re.compile(
    r"(?<![\w.@+-])([a-z_][\w.-]{1,31})@([A-Za-z][\w.-]{2,63}):(?=[/~])"
    r"|\b(?:ssh|scp|sftp|rsync)[ \t]+(?:[^\s;&|]{1,60}[ \t]+){0,8}?([a-z_][\w.-]{1,31})@([A-Za-z][\w.-]{2,63})"
)
# Where a report of text says who ran what: what stays of it, the kind, and what is written instead of the rest
_PRIVATE_LINES = tuple(
    (re.compile(pattern, re.MULTILINE | re.IGNORECASE), kind, instead)
    for pattern, kind, instead in (
        (r"^(\s*#\s*(?:host|node)name\s*:\s*)\S.*", HOST, "host"),
        (r"^(\s*#\s*cmdline\s*:\s*)\S.*", COMMAND, "program"),
        (r"^(cmd:[ \t]*)\S.*", COMMAND, "program"),
        (r"^(\s*Performance counter stats for )\S.*(?=:\s*$)", COMMAND, "'program'"),
        (r'("(?:host_?name|node_?name)"\s*:\s*")(?:[^"\\]|\\.)+', HOST, ""),
        (r'("user_?name"\s*:\s*")(?:[^"\\]|\\.)+', USER, ""),
        (r'("(?:cmd_?line|command_?line|argv|working_?dir|cwd)"\s*:\s*")(?:[^"\\]|\\.)+', COMMAND, ""),
        (r'(<process\b[^>]*?\barguments=")[^"]+', COMMAND, ""),
        (r'(<device\b[^>]*?\bname=")[^"]+', HOST, "Mac"),
    )
)
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,60}-----")
_MAX_KEY_LINES = 400

_WORD = re.compile(r"[A-Za-z_.-]+")
_SHORT = 2048  # characters: a longer text is hardly ever met twice, and would fill memory
_LONG_ENOUGH = 6  # characters: shorter values ("1", "cuda", "gpu") stand in half of all kernel names
_NAME = re.compile(r"[A-Za-z_][\w.-]{3,62}")
# What many machines and people are called, and what is a word of reports as well
_NO_NAMES = {
    "root", "user", "users", "ubuntu", "debian", "admin", "test", "tests", "local", "localhost", "host", "node",
    "none", "null", "true", "false", "self", "main", "data", "runner", "docker", "container", "build", "builder",
    "nobody", "work", "worker", "workspace", "guest", "shared", "public", "default", "device", "devices", "cuda",
    "model", "train", "python", "python3", "torch", "kernel", "memory", "stream", "process", "thread", "server",
    "client", "username", "hostname", "name", "runs", "jobs", "owner", "system", "time", "args", "string", "uint",
    "float", "char", "void", "project", "projects", "conda", "folder", "address", "removed", "token", "mail",
    "command", "environment", "vscode", "jovyan", "coder", "program", "function", "library", "trace", "step",
    "machine", "linux", "darwin",
}  # fmt: skip
_COMMON = {
    "python", "python3", "pytorch", "triton", "nvidia", "cublas", "kernel", "profkit", "localhost", "production",
    "--backend", "--iterations", "--config",
}  # fmt: skip
_INSTEAD = {HOST: "host", USER: "user", COMMAND: "command", TOKEN: "token", PROCESS: "process"}

_Counted = Callable[[str, str], str]  # notes a kind, and gives what is written instead


@dataclass(frozen=True)
class RemovedText:
    """How often something of one kind was taken out."""

    kind: str
    count: int


@dataclass(frozen=True)
class FileLeftOut:
    """A file that a scrubbed copy does not have, why, and what would bring its content along."""

    name: str
    reason: str
    fix: str | None = None


class Redactor:
    """Learns what is private, and removes it from text wherever it stands."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}  # what is private -> its kind
        # of hosts and people; short ones are taken out as whole words -> kind
        self._names: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._counts: Counter[str] = Counter()
        self._forget()

    def _forget(self) -> None:
        self._pattern: re.Pattern[str] | None = None
        self._name_pattern: re.Pattern[str] | None = None
        self._cached = lru_cache(maxsize=65536)(self._redact)

    def learn(self, value: str | None, kind: str) -> None:
        """Remove `value` wherever it stands; too short or too common values are ignored."""
        value = (value or "").strip()
        if len(value) < _LONG_ENOUGH or value.lower() in _COMMON or value.isdigit() or _PUBLIC.match(value):
            return
        if kind == COMMAND and _WORD.fullmatch(value):
            return  # "memory", "gated_mlp": as good a name of a range or a section
        if value not in self._known:
            self._known[value] = kind
            self._forget()

    def learn_name(self, value: str | None, kind: str) -> None:
        """Remove the name of a host or a person wherever it is a word; common and very short ones stay."""
        value = (value or "").strip()
        for name in (value, value.partition(".")[0]) if kind is HOST else (value,):
            skipped = name in self._names or name.lower() in _NO_NAMES or _IPV4.fullmatch(name) is not None
            if not skipped and _NAME.fullmatch(name):
                self._names[name] = kind
                self._forget()

    def learn_text(self, text: str) -> None:
        """Learn the hosts, the people and the commands that fields and paths of the text name."""
        for match in _FIELD.finditer(text):
            name, value = match["name"].lower(), match["quoted"] or match["plain"]
            if name.startswith(("cm", "comma", "argv")):
                if match["quoted"] and " " in value:
                    self.learn_command(value.split())
            elif match["quoted"] or name not in ("host", "user", "login", "owner"):  # words of any sentence
                self.learn_name(value, USER if name.startswith(("user", "login", "owner")) else HOST)
        for match in _HOME.finditer(text):
            self.learn_name(match[1], USER)
        for match in _AT_HOST.finditer(text):
            self.learn_name(match[1] or match[3], USER)
            self.learn_name(match[2] or match[4], HOST)

    def learn_command(self, words: Sequence[str], public: Iterable[str] = ()) -> None:
        """Learn a command's words, above all its secrets; a word that stands in a `public` name stays."""
        for secret in mask_command(words)[1]:
            self.learn(secret, TOKEN)
            if len(secret) < _LONG_ENOUGH and _NAME.fullmatch(secret):
                self._names.setdefault(secret, TOKEN)
                self._forget()
        shown = shown_command(words).words
        for value in {part for word in words if word not in shown for part in (word, word.partition("=")[2])}:
            if not any(value in name for name in public):
                self.learn(value, COMMAND)

    def text(self, text: str) -> str:
        """Return `text` without what is private."""
        if not text:
            return text
        result, removed = (self._cached if len(text) < _SHORT else self._redact)(text)
        for kind, count in removed:
            self.note(kind, count)
        return result

    def data(self, value: Any, public: frozenset[str] = frozenset()) -> Any:
        """Return JSON data without what is private; `public` texts stay, and of commands the program's name."""
        if isinstance(value, str):
            return value if value in public else self.text(value)
        if isinstance(value, dict):
            return {
                self.text(key): self._command(part) if key in ("command", "argv") else self.data(part, public)
                for key, part in value.items()
            }
        return [self.data(part, public) for part in value] if isinstance(value, list) else value

    def _command(self, words: Any) -> Any:
        """Mask each word of a command in its place, except those that are known to be harmless."""
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            return self.data(words)
        if words[:1] == ["profkit"]:  # built by profkit from its options: runs are compared by it
            return [self.text(word) for word in words]
        shown = shown_command(words)
        if shown.masked:
            self.note(COMMAND, shown.masked)
        return [self.text(word) for word in shown.words]

    def note(self, kind: str, count: int = 1) -> None:
        """Count what was taken out elsewhere."""
        self._counts[kind] += count

    def removed(self) -> tuple[RemovedText, ...]:
        """Return what was taken out so far, kinds in their order."""
        return tuple(RemovedText(kind, self._counts[kind]) for kind in KINDS if self._counts[kind])

    def _redact(self, text: str) -> tuple[str, tuple[tuple[str, int], ...]]:
        counts: Counter[str] = Counter()

        def counted(kind: str, by: str) -> str:
            counts[kind] += 1
            return by

        def path(match: re.Match[str]) -> str:
            return self._path(match[0], counted)

        for pattern, kind, instead in _PRIVATE_LINES:
            text, number = pattern.subn(rf"\g<1>{instead}", text)
            counts[kind] += number
        text = self._without_known(text, counted)
        text = hide_secrets(
            text, lambda secret: counted(TOKEN, "<token>" if TOKEN_FORM.fullmatch(secret) else "<removed>")
        )
        text = UUID.sub(lambda match: counted(DEVICE, ZERO) if match[0].strip("GPUMI-0") else match[0], text)
        text = _MAIL.sub(lambda _: counted(USER, "<mail>"), text)
        text = self._without_addresses(text, counted)
        if ":/" in text:  # with colons between them, as PATH has them; by its colon one looks like an address
            text = _PATH_LIST.sub(
                lambda match: ":".join(
                    self._path(part, counted) if part.count("/") > 1 else part for part in match[0].split(":")
                ),
                text,
            )
        for form in (_SHARE, _ABSOLUTE, _WINDOWS, _RELATIVE):
            text = form.sub(path, text)
        text = _BARE.sub(lambda match: match[0] if _LIBRARIES.match(match[0]) else path(match), text)
        if self._names:  # last: a path that a name stands in goes as a path
            text = self._whole_names().sub(
                lambda match: counted(self._names[match[0]], f"<{_INSTEAD[self._names[match[0]]]}>"), text
            )
        return text, tuple(item for item in counts.items() if item[1])

    def _without_known(self, text: str, counted: _Counted) -> str:
        if not self._known:
            return text
        if self._pattern is None:  # a folder that is known reaches to the end of the path that begins with it
            self._pattern = re.compile(
                "|".join(
                    re.escape(value) + (rf"(?:/{_IN_PATH}*)*" if value.startswith(("/", "~")) else "")
                    for value in sorted(self._known, key=len, reverse=True)
                )
            )

        def literal(match: re.Match[str]) -> str:
            kind = self._known.get(match[0], PATH)
            if not match[0].startswith(("/", "~")):
                word = _INSTEAD.get(kind, "removed")
                # a process stands in attributes of XML, too
                return counted(kind, f"[{word}]" if kind == PROCESS else f"<{word}>")
            return (
                counted(kind, self._folder(match[0]))
                if match[0] in self._known
                else self._path(match[0], counted)
            )

        return self._pattern.sub(literal, text)

    def _without_addresses(self, text: str, counted: _Counted) -> str:
        """Remove addresses of stores, servers and machines, and names of an internal network."""

        def remote(match: re.Match[str]) -> str:
            shown = match[2] if match[1].lower() == "file" else self._path(match[2], counted)
            if shown == match[2]:  # what every machine has
                return match[0]
            return f"{match[1] if _LABELS.fullmatch(match[1] + ':') else counted(HOST, '<host>')}:{shown}"

        if "://" in text:
            text = _URL.sub(lambda match: _url(match, counted), text)
        if ":/" in text:
            text = _REMOTE_PATH.sub(remote, text)
        if ":" in text:
            text = _IPV6.sub(lambda match: _ipv6(match[0], counted), text)
            text = _MAC.sub(lambda _: counted(ADDRESS, "<address>"), text)
        if _INTERNAL_END.search(text) is not None:  # three times as fast as the whole form
            text = _INTERNAL.sub(lambda _: counted(HOST, "<host>"), text)
        # A version (`580.159.4.1`) looks like an address too; the loopback and the empty one tell nothing.
        return _IPV4.sub(
            lambda match: match[0] if match[0].startswith(("127.", "0.")) else counted(ADDRESS, "<address>"),
            text,
        )

    def _whole_names(self) -> re.Pattern[str]:
        """Return the pattern of all known names: long ones anywhere, short ones as whole words."""
        if self._name_pattern is None:
            names = sorted(self._names, key=lambda name: (len(name) < _LONG_ENOUGH, -len(name)))
            self._name_pattern = re.compile(
                "|".join(
                    re.escape(name)
                    if len(name) >= _LONG_ENOUGH
                    else rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])"
                    for name in names
                )
            )
        return self._name_pattern

    def _path(self, path: str, counted: _Counted) -> str:
        path = re.sub(r"^//", "/", re.sub(r"[\\/]+", "/", path)) if "\\" in path or "//" in path else path
        if _PUBLIC.match(path) or path.startswith("/folder-"):
            return path
        package = _PACKAGES.fullmatch(path)
        if package is not None:
            return counted(PATH, f"/python{package[1]}")
        folder, _, name = path.rstrip("/").rpartition("/")
        # A name without a dot in it may be a folder's, and the last folder of two is most often a person's.
        whole = "." not in name.lstrip(".") or (path.count("/") < 3 and path[0] == "/")
        shown = self._folder(path.rstrip("/")) if whole else f"{self._folder(folder)}/{name}"
        return counted(PATH, shown)

    def _folder(self, folder: str) -> str:
        return self._folders.setdefault(folder, f"/folder-{len(self._folders) + 1}")


def _url(match: re.Match[str], counted: _Counted) -> str:
    scheme, address = match[1], match[2]
    public = scheme.lower() in ("http", "https") and _PUBLIC_HOST.match(address.rpartition("@")[2])
    return (
        match[0]
        if not address or scheme.lower() == "file" or public
        else f"{scheme}://{counted(ADDRESS, '<address>')}"
    )


def _ipv6(text: str, counted: _Counted) -> str:
    plain = text.rstrip(".:") if not text.endswith("::") else text
    try:
        ipaddress.IPv6Address(plain.partition("%")[0])
    except ValueError:
        return text
    return counted(ADDRESS, "<address>") + text[len(plain) :]


def without_keys(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines without the inside of a key, which spans many of them."""
    inside = 0
    for line in lines:
        if inside and "-----END" not in line and re.fullmatch(r"[\w+/=:,. -]*\s*", line):
            inside -= 1
            continue
        inside = _MAX_KEY_LINES if _KEY_BEGIN.search(line) is not None and "-----END" not in line else 0
        yield line
