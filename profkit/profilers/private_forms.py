"""What tells of a person or a machine by its form: addresses of every kind, names of an internal network, paths.

Secrets have forms of their own: `profkit.runtime.passes.secrets`.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

IN_PATH = r"[^\s/\\\"'`<>|:;,*?(){}\[\]\x00-\x1f=]"
# An address of the web, of a store (s3://, gs://) or of a database. What follows a public host is public, too.
_URL = re.compile(
    r"\b([A-Za-z][A-Za-z0-9+.-]{1,15})://((?:<removed>@)?(?:\[[0-9A-Fa-f:.%]+\])?[^\s\"'`<>\\|(){}\[\],;]*)"
)
_PUBLIC_HOST = re.compile(
    r"(?:[\w-]+\.)*(?:pytorch\.org|nvidia\.com|github\.com|githubusercontent\.com|python\.org|kernel\.org|llvm\.org|"
    r"w3\.org|huggingface\.co|arxiv\.org|perfetto\.dev|chromium\.org|json-schema\.org|speedscope\.app|pypi\.org|"
    r"apple\.com|amd\.com|intel\.com|wikipedia\.org|readthedocs\.io)(?::\d+)?(?=[/?#]|$)|(?:localhost|127\.0\.0\.1)(?::\d+)?(?=[/?#]|$)"
)
# host:/path, as of NFS and scp; more than a letter, which would be a drive
_REMOTE_PATH = re.compile(rf"(?<![\w/:.@-])((?:[\w.+-]+@)?[A-Za-z][\w.-]+):((?:/{IN_PATH}+){{2,}})", re.ASCII)
_PATH_LIST = re.compile(
    rf"(?<![\w:/.\\~-]):?(?:/{IN_PATH}+)+(?::+(?:/{IN_PATH}+)+)+|(?<=[=\"'\s]):(?:/{IN_PATH}+){{2,}}"
)
_LABELS = re.compile(
    r"(?i)(?:file|path|folder|dir|cwd|error|warning|note|in|at|from|to|of|see|open|log|fix|exec|cmd):"
)
_UNC = re.compile(
    r"(?<![\w\\])(?:\\\\[\w.$-]+(?:\\[^\s\\/\"'<>|:*?]+)+|\\{4}[\w.$-]+(?:\\\\[^\s\\/\"'<>|:*?]+)+)\\{0,2}"
)
# //server/share/folder, as Windows and Samba take it too
_SHARE = re.compile(rf"(?<![\w:/.\\~-])//[A-Za-z][\w.-]+(?:/{IN_PATH}+){{2,}}")
# Addresses of the internet, of a site and of a link: `dead::beef` may be a name of C++
_IPV6 = re.compile(
    r"(?<![\w:.])(?:[23][0-9a-f]{3}|f[cd][0-9a-f]{2}|fe[89ab][0-9a-f]|ff0[0-9a-f]|64):[0-9a-f:.]{2,40}(?:%\w+)?(?![\w:])",
    re.IGNORECASE,
)
_NUMBERED = r"(?=[\w.-]*[\d-])"
_INTERNAL = re.compile(
    rf"(?<![\w.@/-])(?:{_NUMBERED}(?:[a-z0-9][\w-]*\.)+(?:internal|local|private|cluster|home)"
    r"|(?:[a-z0-9][\w-]*\.)+(?:lan|corp|intranet|localdomain|localnet|home\.arpa|svc\.cluster\.local)"
    r"|ip-\d{1,3}(?:-\d{1,3}){3}(?:\.[\w.-]+)?)(?![\w-]|\.\w|\()",
    re.IGNORECASE,
)
_INTERNAL_END = re.compile(
    r"\.(?:internal|local|private|cluster|home|lan|corp|intranet)|\bip-\d", re.IGNORECASE
)
# ../ann/x.py; and a/b/c.py, where its first part is not that of a library that everybody has
_RELATIVE = re.compile(rf"(?<![\w/.\\~-])\.{{1,2}}(?:/{IN_PATH}+){{2,}}|(?<![\w/.\\~-])\.\.(?:/{IN_PATH}+)+")
_BARE = re.compile(
    r"(?<![\w/.\\:~@+<-])(?:[A-Za-z0-9_@+][\w.@+-]*/){2,}[\w@+-][\w.@+-]*?\.(?:py|pyx|ipynb|c|cc|cpp|cxx|cu|cuh|h|hpp|rs|go|so|bin|"
    r"pt|pth|ckpt|safetensors|gguf|json|jsonl|ya?ml|toml|txt|csv|parquet|h5|npz|npy|onnx|sh|log|sqlite|db|pkl)(?![\w/])"
)
_LIBRARIES = re.compile(
    r"(?:artifacts|logs|profiles|reports|torch|torchvision|torchaudio|aten|ATen|c10|caffe2|csrc|triton|numpy|nvidia|cuda|"
    r"profkit|jax|jaxlib|xla|cupy|scipy|python3?(?:\.\d+)?|lib|lib64|include|third_party|cutlass|thrust|cub|transformers|"
    r"site-packages|dist-packages|sysdeps|nptl|elf|kernel|arch|drivers|net|mm|fs|benchmark|Objects|Python|Modules)/"
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
_AT_HOST = re.compile(r"(?<![\w.@+-])([a-z_][\w.-]{1,31})@([A-Za-z][\w.-]{2,63}):(?=[/~])")
_BY_SSH = re.compile(
    r"\b(?:ssh|scp|sftp|rsync)[ \t]+(?:[^\s;&|]{1,60}[ \t]+){0,8}?([a-z_][\w.-]{1,31})@([A-Za-z][\w.-]{2,63})"
)


def private_fields(text: str) -> Iterator[tuple[str, str]]:
    """What fields and paths of a text tell: ("host", name), ("user", name), ("home", its owner), ("command", words)."""
    for found in _FIELD.finditer(text):
        name, value = found["name"].lower(), found["quoted"] or found["plain"]
        if found["quoted"] is None and name in ("host", "user", "login", "owner"):  # words of any sentence
            continue
        if name.startswith(("c", "a")) and not name.startswith("computer"):
            if found["quoted"]:
                yield "command", value
        else:
            yield ("user" if name.startswith(("user", "login", "owner")) else "host"), value
    for found in _HOME.finditer(text):
        yield "home", found[1]
    for found in (*_AT_HOST.finditer(text), *_BY_SSH.finditer(text)):
        yield "user", found[1]
        yield "host", found[2]


Replace = Callable[[str], str]


def replace_addresses(text: str, address: Replace, host: Replace, path: Replace) -> str:
    """The text without addresses of stores, servers and machines, and without names of an internal network."""
    if "://" in text:
        text = _URL.sub(lambda found: _url(found, address), text)
    if ":/" in text:
        text = _REMOTE_PATH.sub(lambda found: _remote_path(found, host, path), text)
    if ":" in text:
        text = _IPV6.sub(lambda found: _ipv6(found[0], address), text)
    if _INTERNAL_END.search(text) is None:  # three times as fast as the whole form
        return text
    return _INTERNAL.sub(lambda found: host(found[0]), text)


def _remote_path(found: re.Match[str], host: Replace, path: Replace) -> str:
    if found[1].lower() == "file":  # the same path, written as an address
        return found[0]
    shown = path(found[2])
    if shown == found[2]:  # what every machine has
        return found[0]
    return f"{found[1] if _LABELS.fullmatch(found[1]) else host(found[1])}:{shown}"


def _url(found: re.Match[str], address: Replace) -> str:
    scheme, rest = found[1], found[2]
    if not rest or scheme.lower() == "file":
        return found[0]
    if scheme.lower() in ("http", "https") and _PUBLIC_HOST.match(rest.rpartition("@")[2]):
        return found[0]
    return f"{scheme}://{address(rest)}"


def _ipv6(text: str, address: Replace) -> str:
    plain = text.rstrip(".:") if not text.endswith("::") else text
    with suppress(ValueError):
        ipaddress.IPv6Address(plain.partition("%")[0])
        return address(plain) + text[len(plain) :]
    return text


def replace_shares(text: str, path: Replace) -> str:
    r"""The text without paths of Windows' shares: `\\server\share\x`, also with each backslash doubled."""
    if "//" in text:
        text = _SHARE.sub(lambda found: path(found[0][1:]), text)
    return _UNC.sub(lambda found: path(re.sub(r"\\+", "/", found[0])), text) if "\\\\" in text else text


def mask_shares(text: str, mask: Replace) -> str:
    """The same with what `mask` makes of each as it is written."""
    return _UNC.sub(lambda found: mask(found[0]), text) if "\\\\" in text else text


def replace_path_lists(text: str, path: Replace) -> str:
    """The text without paths with colons between them, as PATH has them; by its colon one looks like an address."""
    if ":/" not in text:
        return text
    return _PATH_LIST.sub(
        lambda found: ":".join(path(one) if one.count("/") > 1 else one for one in found[0].split(":")), text
    )


def replace_relative(text: str, path: Replace) -> str:
    """The text without relative paths that name folders; those of libraries that everybody has stay."""
    if "/" not in text:
        return text
    text = _RELATIVE.sub(lambda found: path(found[0]), text)
    return _BARE.sub(lambda found: found[0] if _LIBRARIES.match(found[0]) else path(found[0]), text)


_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,60}-----")
_MOST_KEY_LINES = 400


def without_keys(lines: Iterable[str]) -> Iterator[str]:
    """Lines without what lies inside of a key: a form that goes over many of them."""
    inside = 0
    for line in lines:
        if inside and "-----END" not in line and re.fullmatch(r"[\w+/=:,. -]*\s*", line):
            inside -= 1
            continue
        inside = _MOST_KEY_LINES if _KEY_BEGIN.search(line) is not None and "-----END" not in line else 0
        yield line
