"""What private text looks like: tokens, addresses, identities, folders of a person, environments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

# Forms that the givers of tokens document: Hugging Face, GitHub, GitLab, OpenAI and Anthropic, AWS, Slack, Google;
# and JSON web tokens, which begin with {" in base 64. One of plain hex (Weights & Biases) its variable's name tells.
TOKEN = re.compile(
    r"\b(?:hf_\w{12,}|gh[pousr]_\w{12,}|github_pat_\w{12,}|glpat-[\w-]{12,}|sk-[\w-]{16,}|AKIA[0-9A-Z]{16}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*)"
)
UUID = re.compile(r"\b(?:GPU-|MIG-)?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
ZERO = "00000000-0000-0000-0000-000000000000"
IPV4 = re.compile(r"(?<![\w.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\w.])")
MAC = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:])")
MAIL = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
LOGIN = re.compile(r"(?<=://)[^/\s:@]+:[^/\s@]+(?=@)")
# NAME=value of an environment; the value reaches to the end of the word.
ASSIGNED = re.compile(
    r"\b([A-Za-z_]\w*(?:TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|CREDENTIALS?)\w*)=([^\s\"',;}]+)"
)
IN_PATH = r"[^\s/\\\"'`<>|:;,*?(){}\[\]\x00-\x1f=]"
# Two parts at least, and nothing before it that makes it a part of a word, a ratio or a web address. A blank may
# stand inside a folder's name: only known folders are found then (as literals).
PATH = re.compile(rf"(?:(?<![\w:/.\\~-])|(?<=-[ILoB]))(?:~|file:(?://)?)?(?:/{IN_PATH}+){{2,}}/?")
WINDOWS = re.compile(r"(?<!\w)[A-Za-z]:\\{1,2}(?:[^\s\\\"'<>|:*?]+\\{1,2})+[^\s\\\"'<>|:*?]*")
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
    found = re.match(r"#?[\d.]*", text)
    return found[0].rstrip(".") if found is not None else ""


def environment_variables(text: str) -> Iterable[tuple[str, str]]:
    """The names and values of an environment however it is written down."""
    try:
        told = json.loads(text)
    except ValueError:
        told = None
    except RecursionError:
        return
    if isinstance(told, dict):
        for name, value in told.items():
            if isinstance(value, str):
                yield str(name), value
            elif isinstance(value, (list, dict)):
                yield from environment_variables(json.dumps(value))
        return
    if isinstance(told, list):
        for entry in told:
            if isinstance(entry, str):
                yield from environment_variables(entry)
            elif isinstance(entry, dict):
                yield from environment_variables(json.dumps(entry))
        return
    for line in re.split(r"[\n\x00]|(?<=[^=]);(?=[A-Za-z_]\w*=)", text):
        name, mark, value = line.strip().partition("=")
        if mark and re.fullmatch(r"[A-Za-z_]\w*", name):
            yield name, value.strip("\"'")
