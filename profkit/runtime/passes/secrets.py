"""Secrets in a text or a command by the forms that they have: names of options and variables, tokens, addresses.

Options like `-pX` are like any other word by their form (`docker run -p 80:80`): for a few programs (`mysql -pX`,
`curl -u USER:X`) the program's name decides. What has no such form is not found.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

_APART = "\0"  # between the words of a command, where a line of text has a blank
# Programs, and what stands before a password among their words.
_OF_PROGRAMS = tuple(
    re.compile(
        rf"((?<![\w.-])(?:{programs})(?:\.exe)?[ \t\0][^\r\n;&|]{{0,500}}?(?<![^ \t\0\"'`]){option})([^\s\0\"'`]+)"
    )
    for programs, option in (
        (r"mysql\w*|mariadb[\w-]*|mongo\w*|sshpass", r"-p(?:[ \t\0](?!-))?"),
        (r"7z[arz]?", r"-p"),
        (r"(?:un)?zip", r"-P(?:[ \t\0](?!-))?"),
        (r"(?:docker|podman|helm)[ \t\0](?:registry[ \t\0])?login", r"-p[ \t\0](?!-)"),
        (r"redis-cli", r"(?:-a|--pass)[ \t\0](?!-)"),
        (r"curl", r"(?:-[uU]|--user|--proxy-user)[ \t\0=]?[^\s\0:\"'`]*:"),
        (r"smbclient", r"(?:-U|--user)[ \t\0=]?[^\s\0%\"'`]*%"),
        (r"openssl", r"pass:"),
    )
)
_HINT = re.compile(r"[\s\0]-[-apPuU]|pass:")


def _hide_of_programs(text: str, hide: Callable[[str], str]) -> str:
    """The text with `hide(password)` for each password in a line for a shell that it holds."""
    if _HINT.search(text) is None:  # three times as fast as the whole form
        return text
    for form in _OF_PROGRAMS:
        text = form.sub(lambda found: found[1] + _hide_value(found[2], hide), text)
    return text


_T = TypeVar("_T")

HIDDEN = "***"
# Forms that the givers of tokens document: Hugging Face, GitHub, GitLab, OpenAI and Anthropic, AWS, Slack, Google,
# Stripe, SendGrid, Vault, DigitalOcean, Docker; and JSON web tokens, which begin with {" in base 64. One of plain hex
# (Weights & Biases) its variable's name tells.
TOKEN_FORM = re.compile(
    r"\b(?:hf_\w{12,}|gh[pousr]_\w{12,}|github_pat_\w{12,}|glpat-[\w-]{12,}|sk-[\w-]{16,}|A[KS]IA[0-9A-Z]{16}"
    r"|[sr]k_(?:live|test)_\w{16,}|SG\.[\w-]{16,}\.[\w-]{16,}|hvs\.[\w-]{20,}|dop_v1_[0-9a-f]{40,}"
    r"|ya29\.[\w-]{20,}|dckr_pat_[\w-]{20,}|xapp-[\w-]{10,}|(?<=hooks\.slack\.com/services/)[\w/]{8,}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|npm_\w{30,}|pypi-[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*)"
)
# user:password@ of an address, or a token alone before the @ of one by http
LOGIN = re.compile(r"(?<=://)(?:[^/\s:@\"']*:[^/\s@\"']+|[^/\s:@\"']{16,})(?=@)")
KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|CERTIFICATE|MESSAGE)[A-Z ]{0,9}-----"
    r"(?:(?!-----END)[\w\s+/=.,:\\-]){0,20000}(?:-----END [A-Z0-9 ]{0,60}-----)?"
)
_HEADER = re.compile(
    r"(\b(?:proxy-)?authorization\\?[\"']?\s{0,2}[:=]\s{0,2}\\?[\"']?(?:(?:bearer|basic|token|digest|negotiate|apikey)\s+)?)"
    r"([^\s\"',;\\]+)"
    r"|(\bbearer\s+)([\w.~+/-]{8,}=*)"
    r"|(\b(?:set-)?cookie\\?[\"']?\s{0,2}:\s{0,2}\\?[\"']?)([^\r\n\"'\\]*=[^\r\n\"'\\]+)",
    re.IGNORECASE,
)
_HEADER_WORD = re.compile(r"[aA]uthorization|AUTHORIZATION|[bB]earer|BEARER|[cC]ookie|COOKIE")
_QUERY = re.compile(
    r"((?<=[?&;])[\w.-]{0,40}(?:key|sig|signature|token|secret|passw(?:or)?d|pwd|auth|code|credential|session)=)([^&\s\"'#<>]+)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?:token|secrets?|pass(?:w(?:or)?d|phrase)?|pwd?|key(?:[-_]?id)?|credentials?|auth|bearer)"
    r"(?:(\\?[\"']?\s{0,2}(?:=(?!=)|:(?![:/\\]))\s{0,2}\\?[\"']?)|(\s{1,9})(?!-))",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[^\s\"',;&|<>(){}\[\]\\]+")
_BEFORE = re.compile(r"(?<![\w.-])-{0,2}(?:[A-Za-z_][\w.-]*)?\Z")
_LONGEST_NAME = 60
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ALWAYS = {"password", "passwd", "passphrase", "pwd", "secret", "secrets", "apikey", "authtoken"}
_ALWAYS |= {"accesstoken", "bearer", "credential", "credentials", "sshpass"}
_PASSES = {"", "db", "database", "user", "admin", "root", "smtp", "mail", "proxy", "http", "ftp", "redis"}
_PASSES |= {"ssh"}
_KEYS = {"api", "access", "secret", "private", "encryption", "license", "ssh", "account", "storage"}
_KEYS |= {"signing", "master", "service", "subscription", "deploy", "auth", "wandb", "openai"}
# Words of language models, which are no secrets
_TOKENS_OF_TEXT = {"pad", "eos", "bos", "unk", "mask", "sep", "cls", "special", "stop", "end", "start"}
_TOKENS_OF_TEXT |= {"image", "next", "first", "last", "max", "min", "num", "per", "new", "prompt", "audio"}
_TOKENS_OF_TEXT |= {"video", "decoder", "time"}
_NO_VALUE = re.compile(r"\*+|none|null|true|false|undefined|<\w+>|\$\{?\w+\}?", re.IGNORECASE)
_VARIABLE = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|_KEY|APIKEY|CRED|COOKIE|PRIVATE|WEBHOOK|DSN", re.IGNORECASE
)
LEAST_ANYWHERE = 6  # characters of a value that is hidden wherever it stands


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether an option or a variable of this name holds a secret: `--hf-token`, `DB_PASSWORD`, `apiKey`."""
    if name in ("PWD", "OLDPWD"):
        return False
    words = [word for part in re.split(r"[-_.]+", name) for word in _CAMEL.split(part) if word]
    *before, last = [word.lower() for word in words] or [""]
    previous = before[-1] if before else ""
    if last == "id" and before[-2:] == ["access", "key"]:
        return True
    if last == "key":
        return previous in _KEYS
    if last == "auth":
        return previous in ("", "basic", "http", "proxy", "x")
    if last in ("pass", "pw"):
        return previous in _PASSES
    return (
        last in _ALWAYS
        or last.endswith(("password", "passwd", "passphrase"))
        or (last == "token" and previous not in _TOKENS_OF_TEXT)
    )


def is_secret_variable(name: str, value: str = "") -> bool:
    """Whether a variable of the environment may hold a secret, by its name or its form; rather once too often.

    The address of a proxy is needed by whoever goes on from here, so it is none.
    """
    if _VARIABLE.search(name) or is_secret_name(name):
        return True
    in_value = TOKEN_FORM.search(value) or KEY_BLOCK.search(value) or LOGIN.search(value)
    return in_value is not None and not name.lower().endswith("_proxy")


def hide_secrets(text: str, hide: Callable[[str], str]) -> str:
    """The text with `hide(secret)` for each secret in it that its form or its name tells."""
    text = KEY_BLOCK.sub(lambda found: hide(found[0]), text)
    text = TOKEN_FORM.sub(lambda found: hide(found[0]), text)
    if "://" in text:
        text = LOGIN.sub(lambda found: hide(found[0]), text)
    if _HEADER_WORD.search(text) is not None:  # ten times as fast as the whole form
        text = _HEADER.sub(lambda found: _second_hidden(found.groups(), hide), text)
    text = _hide_of_programs(text, hide)
    text = _QUERY.sub(lambda found: found[1] + _hide_value(found[2], hide), text)
    return "".join(_named_hidden(text, hide))


def _second_hidden(groups: Sequence[str | None], hide: Callable[[str], str]) -> str:
    name, value = [group for group in groups if group is not None]
    return name + _hide_value(value, hide)


def _hide_value(value: str, hide: Callable[[str], str]) -> str:
    return value if _NO_VALUE.fullmatch(value) else hide(value)


def _named_hidden(text: str, hide: Callable[[str], str]) -> Iterator[str]:
    done = at = 0
    while (found := _NAMED.search(text, at)) is not None:
        mark = found[1] or found[2]
        # "auth token=x": the next word may be the name
        at = found.end() if found[1] else found.end() - len(mark)
        start = found.start()
        before = _BEFORE.search(text, max(0, start - _LONGEST_NAME), start)
        if before is None:  # in the middle of a longer word
            continue
        name = before[0] + text[start : found.end() - len(mark)]
        if not is_secret_name(name.lstrip("-")):
            continue
        if found[2] and not name.startswith("-"):  # "the token is": only an option has its value so
            continue
        value = _VALUE.match(text, found.end())
        if value is None:
            continue
        at = value.end()
        if _is_named_secret(name, mark, value[0]) and text[at : at + 1] not in ("(", "["):  # password=ask()
            yield text[done : value.start()]
            yield hide(value[0])
            done = at
    yield text[done:]


def _is_named_secret(name: str, mark: str, value: str) -> bool:
    is_word = name.lower().endswith("token") or name.lower() in ("pass", "pw")
    return not _NO_VALUE.fullmatch(value) and (not is_word or _is_token(mark, value))


def _is_token(mark: str, value: str) -> bool:
    """Whether it is no number of tokens, and no line of a program: `token = ids[i]`, `f(token=next_token)`."""
    if re.fullmatch(r"[\d.]{1,9}|[A-Za-z_.]+", value):
        return False
    return "= " not in mark or len(value) >= 16


def mask_command(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A command with its secrets hidden, and what they are. `--password x`, `--token=x`, `API_KEY=x`, and tokens."""
    masked: list[str] = []
    values: list[str] = []

    def hide(value: str) -> str:
        values.append(value)
        return HIDDEN

    is_value = False
    for word in _hide_of_programs(_APART.join(words), hide).split(_APART) if words else ():
        if is_value and not word.startswith("--") and not _is_plain(masked[-1], word):
            masked.append(_hide_value(word, hide))
            is_value = False
            continue
        option, equals, value = word.partition("=")
        is_value = False
        if option.startswith("-") and not equals and is_secret_name(option.lstrip("-")):
            is_value = True
        elif (
            equals
            and value
            and re.fullmatch(r"[\w.+-]+", option)
            and is_secret_name(option.lstrip("-"))
            and not _is_plain(option, value)
        ):
            word = f"{option}={_hide_value(value, hide)}"
        else:
            word = hide_secrets(word, hide)
        masked.append(word)
    return tuple(masked), tuple(dict.fromkeys(values))


def hide_values(value: _T, secrets: Sequence[str]) -> _T:
    """Plain data, or dataclasses, without the secrets of a command; one of a few letters only beside its name."""
    return cast("_T", _hide_in(value, secrets)) if secrets else value


def _hide_in(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            if secret in value:
                short = len(secret) < LEAST_ANYWHERE
                value = hide_secrets(value, lambda _: HIDDEN) if short else value.replace(secret, HIDDEN)
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {
            field.name: new
            for field in dataclasses.fields(value)
            if (new := _hide_in(old := getattr(value, field.name), secrets)) is not old
        }
        return dataclasses.replace(value, **changes) if changes else value
    if isinstance(value, (tuple, list)):
        words = value
        if any(secret in words for secret in secrets) and all(isinstance(word, str) for word in words):
            words = type(value)(mask_command(words)[0])
        new = type(value)(_hide_in(part, secrets) for part in words)
        return value if len(new) == len(value) and all(map(operator.is_, new, value)) else new
    if isinstance(value, Mapping):
        return {_hide_in(key, secrets): _hide_in(part, secrets) for key, part in value.items()}
    return value


def _is_plain(option: str, value: str) -> bool:
    """Whether it is a number of tokens or of passes, and no token."""
    return option.lower().endswith(("token", "-pass")) and re.fullmatch(r"[\d.]{1,9}", value) is not None
