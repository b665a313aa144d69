"""Secrets in a text or a command by the forms that they have: names of options and variables, tokens, addresses.

Passwords that only a program's own options tell: `program_passwords`. What has no such form is not found.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from profkit.runtime.passes.program_passwords import hide_in_text, program_secrets

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
# What nobody lists: a long word that no person and no compiler made, by its letters. Names of kernels, of mangled
# functions and of files are made of words; hashes alone, in hex, stay: a commit is one, too.
_LONG_WORD = re.compile(r"[A-Za-z0-9_~-]{20,}|[A-Za-z0-9+/]{40,}={0,2}")
_LETTERS = re.compile(r"[a-z]{3,}|[A-Z]{3,}|(?<![a-z])[A-Z][a-z]{3,}")
_HEX = re.compile(r"(?:0x)?(?:[0-9a-f]+|[0-9A-F]+)")
_PREFIXED_HEX = re.compile(
    r"([A-Za-z][A-Za-z0-9]{0,15})(?:[_~-][A-Za-z0-9]{1,8})?[_~-](?:[0-9a-f]{24,}|[0-9A-F]{24,})(?:[_-][0-9a-f]{8,})?"
)
_GIVEN = re.compile(
    r"[A-Za-z]{2,10}\d?[_-](?:[A-Za-z]{2,5}\d?[_-])?[A-Za-z0-9]{28,}"
)  # what services give: `name_` before
_NO_TOKEN = re.compile(
    r"\w{0,8}_Z[A-Z0-9]|0x|[\d_]+[eE]-?\d*[fFlL]?\Z|(?:\w{3}-)?[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-"
)
_HASHES = re.compile(
    r"(?i)sha\d*|md5|blake\w*|crc\d*|hash|digest|commit|rev|revision|git|build|cache|id|uuid|kernel|graph|fn|triton|inductor|cubin|"
    r"gpu|mig|module|image|layer|blob|snapshot|node|trace|span|run|py|cp|tmp|temp|file|lib|v\d+"
)


@functools.lru_cache(maxsize=65536)
def looks_random(word: str) -> bool:
    """Return whether a word of 20 characters or more is like what a generator of tokens makes, and like no name."""
    if len(word) < 20 or _NO_TOKEN.match(word) is not None:
        return False
    word = word.rstrip("=")
    if (found := _PREFIXED_HEX.fullmatch(word)) is not None:
        return _HASHES.fullmatch(found[1]) is None
    bare = re.sub(r"[_~+/-]", "", word)
    if len(bare) < 20 or _HEX.fullmatch(bare):
        return False
    words = sum(len(run) for run in _LETTERS.findall(word))
    lower, upper = re.search("[a-z]", bare) is not None, re.search("[A-Z]", bare) is not None
    digits = sum(map(str.isdigit, bare))
    longest = max(re.split(r"[_~+/-]", word), key=len)
    if lower and upper:  # names of kernels have a sign after each few letters, and few groups of digits
        enough = len(re.findall(r"\d+", bare)) > 1 and len(longest) >= min(16, len(bare) // 2)
        most = 0.56 if _GIVEN.fullmatch(word) else 0.36 if len(bare) < 28 else 0.44
        return enough and words < most * len(bare)
    # of one case, letters say less: only long ones, without a sign between, of many letters and digits
    if len(longest) < 28 or _HEX.fullmatch(longest) or len(set(longest)) < 14:
        return False
    digits = sum(map(str.isdigit, longest))
    changes = len(re.findall(r"(?<=\d)[A-Za-z]|(?<=[A-Za-z])\d", longest))
    return digits >= len(longest) // 10 and changes >= len(longest) // 6


# user:password@ of an address, or a token alone before the @ of one by http
LOGIN = re.compile(
    r"(?<=://)(?:[^/\s:@\"']{0,100}:(?!\d{1,5}/)[^\s\"'<>@]{1,200}(?:@[^\s\"'<>@]{1,100}){0,3}|[^/\s:@\"']{16,200})(?=@)"
    r"|(?<=thin:)[^\s/@:]{1,60}/[^\s/@]{1,100}(?=@)"
    r"|(?<=webhookb2/)[^\s\"'<>]{20,300}"
)
KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|CERTIFICATE|MESSAGE)[A-Z ]{0,9}-----"
    r"(?:(?!-----END)[\w\s+/=.,:\\-]){0,20000}(?:-----END [A-Z0-9 ]{0,60}-----)?"
)
_HEADER = re.compile(
    r"(\b(?:proxy-)?authorization\\{0,8}[\"']?\s{0,2}[:=]\s{0,2}\\{0,8}[\"']?"
    r"(?:(?:bearer|basic|token|digest|negotiate|apikey|\w{2,10}key)\s+)?)"
    r"((?:[\w-]{1,20}[ ,]{1,2}){0,2}(?:[\w-]{1,20}=\\{0,8}\"?[^\r\n\"'\\]{0,400}\\{0,8}\"?[, ]{0,2}){2,20}"
    r"|token=\\{0,8}\"[^\"\\]*|[^\s\"',;\\]+)"
    r"|(\bbearer\s+)([\w.~+/-]{8,}=*)"
    r"|(\b(?:set-)?cookie\\{0,8}[\"']?\s{0,2}:\s{0,2}\\{0,8}[\"']?)([^\r\n\"'\\]*=[^\r\n\"'\\]+)",
    re.IGNORECASE,
)
_HEADER_WORD = re.compile(r"[aA]uthorization|AUTHORIZATION|[bB]earer|BEARER|[cC]ookie|COOKIE")
_QUERY = re.compile(
    r"((?<=[?&;])[\w.-]{0,40}(?:key|sig|signature|token|secret|passw(?:or)?d|pwd|auth|code|credential|session)=)([^&\s\"'#<>]+)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?:token|secrets?|pass(?:w(?:or)?d|phrase|code)?|pwd?|key(?:[-_]?id)?|credentials?|creds?|auth|bearer|jwt|otp|pin|phrase|"
    r"mnemonic|cookies?|hmac|signature|session[-_]?id|login)"
    r"(?:(\\{0,8}[\"'`]?\]?\s{0,2}(?:=>|:?=(?!=)|==(?=\s?[\"'])|:(?![:/\\]))\s{0,2}(?:[bru]{1,2}(?=[\"']))?"
    r"(?:[|>][+-]?)?(?:\n[ \t]{1,20})?)|(\s{1,9})(?!-))",
    re.IGNORECASE,
)
# What is a name in quotes or tags, and its value in the next: XML, YAML of Kubernetes, properties, arguments of a call
_IN_TAGS = re.compile(r"<([A-Za-z][\w:.-]{0,60})(?:\s[^<>\n]{0,200})?>([^<>]{1,4096})</")
_PAIRED = re.compile(
    r"\b(?:name|key)\\{0,8}[\"']?\s{0,2}[=:]\s{0,2}\\{0,8}[\"']?([A-Za-z][\w.-]{0,60})\\{0,8}[\"']?[,\s]{1,20}\\{0,8}[\"']?value\\{0,8}[\"']?\s{0,2}[=:]\s{0,2}"
    r"(?:\\{0,8}[\"']([^\"'\n\\]{1,4096})|([^\s\"'<>,]{1,4096}))",
    re.IGNORECASE,
)
_CALL_PAIR = re.compile(r"(?<=\()\s?([\"'])([A-Za-z][\w.-]{0,60})\1\s?,\s?(?:([\"'])([^\"'\n]{1,4096})\3)")
_LOG_IN = re.compile(
    r"\b(?:\w{0,20}login|authenticate|HTTP\w{0,10}Auth|BasicAuth|set_?password|password|auth\s?=\s?)\((?=[\"'])([^()\n]{1,400})",
    re.IGNORECASE,
)
_LITERAL = re.compile(r"([\"'])((?:[^\"'\\\n]|\\.)+)\1")
_SET = re.compile(
    r"\b(?:ENV|ARG|setenv|set|config(?: --\w+)?|export)[ \t]+"
    r"(?:/{2}[\w./-]{1,80}:)?([A-Za-z_][\w.-]{2,60})[ \t]+(?=[^=\s])([^\s;&|]+)"
)
_PROSE = re.compile(
    r"\b(password|passphrase|passcode|pin|code|token|api[ -]?key|secret|access key|private key)"
    r"(?: provided| is| was)?(?:: | )([^\s\"'<>,;()]{6,200})",
    re.IGNORECASE,
)
_DIGITS = re.compile(
    r"(?i)\b((?:one-time |otp |security |access )?(?:pin|code|otp|passcode) ?[:=] ?)(\d{4,8})\b"
)
_HASHED = re.compile(r"\$(?:2[abxy]|[1567y]|argon2\w{0,2}|scrypt|pbkdf2[\w-]{0,10})\$[\w./$=,+-]{20,400}")
_PUTTY = re.compile(r"(Private-Lines: \d+\s+)([\w+/=\s]{20,20000})")
_LITERALS = {
    "str",
    "int",
    "bytes",
    "bool",
    "float",
    "string",
    "optional",
    "any",
    "object",
    "type",
    "field",
    "callable",
    "list",
}
_VALUE = re.compile(r"(?:[^\s\"',;&|<>(){}\[\]\\]|&(?!amp;|\w{1,40}=|&|\s))+")
_QUOTE = re.compile(r"(\\{0,16})([\"'`])|\n")
_LONGEST_VALUE = 1024  # characters between two quotes
_TYPED = re.compile(r"(?:\[\w{1,40}\])?\s?=\s?[\"']([^\"'\n]+)")
_BEFORE = re.compile(r"(?<![\w.-])-{0,2}(?:[A-Za-z_][\w.-]*)?\Z")
_LONGEST_NAME = 60
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ALWAYS = {"password", "passwd", "passphrase", "pwd", "secret", "secrets", "apikey", "authtoken"}
_ALWAYS |= {
    "accesstoken",
    "bearer",
    "credential",
    "credentials",
    "sshpass",
    "creds",
    "cred",
    "jwt",
    "otp",
    "hmac",
}
_ALWAYS |= {
    "mnemonic",
    "passcode",
    "signature",
    "authkey",
    "cookie",
    "cookies",
    "totp",
    "sas",
    "privatekey",
    "secretkey",
}
_PASSES = {"", "db", "database", "user", "admin", "root", "smtp", "mail", "proxy", "http", "ftp", "redis"}
_PASSES |= {
    "ssh",
    "vault",
    "become",
    "sudo",
    "key",
    "keystore",
    "ansible",
    "login",
    "redis",
    "mysql",
    "postgres",
}
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
# What each name of a secret has in it
_IN_NAMES: tuple[str, ...] = (
    "pass", "token", "secret", "key", "pw", "cred", "auth", "bearer", "jwt", "otp", "pin", "phrase", "mnemonic",
    "cookie", "hmac", "signature", "session", "login", "code", "sas", "private-lines",
)  # fmt: skip
MIN_CHARACTERS_ANYWHERE = 6  # of a value that is hidden wherever it occurs


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Return whether an option or a variable of this name holds a secret: `--hf-token`, `DB_PASSWORD`, `apiKey`."""
    if name in ("PWD", "OLDPWD"):
        return False
    words = [word for part in re.split(r"[-_.]+", name) for word in _CAMEL.split(part) if word]
    *before, last = [word.lower() for word in words] or [""]
    previous = before[-1] if before else ""
    if last == "id" and before[-2:] == ["access", "key"]:
        return True
    if last == "key":
        return previous in _KEYS
    if last == "id" and previous in ("session", "secret"):
        return True
    if last == "phrase":
        return previous in ("seed", "pass", "secret", "recovery")
    if last in ("pin", "code", "login"):
        return not before if last != "code" else previous in ("auth", "pin", "access", "otp", "mfa")
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
    """Return whether a variable of the environment may hold a secret, by its name or its form; rather once too often.

    The address of a proxy is needed by whoever goes on from here, so it is none.
    """
    if _VARIABLE.search(name) or is_secret_name(name):
        return True
    in_value = TOKEN_FORM.search(value) or KEY_BLOCK.search(value) or LOGIN.search(value)
    return in_value is not None and not name.lower().endswith("_proxy")


def hide_secrets(text: str, hide: Callable[[str], str]) -> str:
    """Return the text with `hide(secret)` for each secret in it that its form or its name tells."""
    text = KEY_BLOCK.sub(lambda found: hide(found[0]), text)
    text = TOKEN_FORM.sub(lambda found: hide(found[0]), text)
    if "://" in text or "thin:" in text:
        text = LOGIN.sub(lambda found: hide(found[0]), text)
    if _HEADER_WORD.search(text) is not None:  # ten times as fast as the whole form
        text = _HEADER.sub(lambda found: _second_hidden(found.groups(), hide), text)
    text = hide_in_text(text, lambda value: _hide_value(value, hide))
    text = _QUERY.sub(lambda found: found[1] + _hide_value(found[2], hide), text)
    lower = text.lower()
    if any(word in lower for word in _IN_NAMES):  # five times as fast as the whole forms
        text = _in_pairs_hidden(text, hide)
        text = "".join(_named_hidden(text, hide))
    text = _LONG_WORD.sub(lambda found: hide(found[0]) if looks_random(found[0]) else found[0], text)
    if "$" in text:
        text = _HASHED.sub(lambda found: hide(found[0]), text)
    return text


def _in_pairs_hidden(text: str, hide: Callable[[str], str]) -> str:
    """Hide values whose name precedes them in quotes, tags or words: `<password>X</password>`, `ENV TOKEN X`."""

    def second(name: int, value: int) -> Callable[[re.Match[str]], str]:
        def hidden(found: re.Match[str]) -> str:
            number = value if found[value] is not None else value + 1
            if not is_secret_name(found[name]) or _NO_VALUE.fullmatch(found[number]):
                return found[0]
            start = found.start(number) - found.start()
            return found[0][:start] + hide(found[number]) + found[0][start + len(found[number]) :]

        return hidden

    def literals(found: re.Match[str]) -> str:
        inside = _LITERAL.sub(
            lambda literal: f"{literal[1]}{_hide_value(literal[2], hide)}{literal[1]}", found[1]
        )
        return found[0][: found.start(1) - found.start()] + inside

    def prose(found: re.Match[str]) -> str:
        least = 16 if found[1].lower() in ("token", "code") else 6
        value = found[2].rstrip(".:!?")
        is_mixed = re.search(r"[A-Za-z]", value) and re.search(r"\d|[!@#$%^&*]", value)
        if not is_mixed or len(value) < least or re.search(r"[=/\\:]", value) or _NO_VALUE.fullmatch(value):
            return found[0]
        return found[0][: found.start(2) - found.start()] + hide(value) + found[2][len(value) :]

    if "</" in text:
        # In tables of Instruments a column has its name in this tag.
        text = _IN_TAGS.sub(lambda tag: tag[0] if tag[1] == "mnemonic" else second(1, 2)(tag), text)
    if "value" in text:
        text = _PAIRED.sub(second(1, 2), text)
    if "(" in text:
        text = _CALL_PAIR.sub(second(2, 4), text)
        text = _LOG_IN.sub(literals, text)
    text = _SET.sub(second(1, 2), text)
    text = _PROSE.sub(prose, text)
    text = _DIGITS.sub(lambda found: found[1] + hide(found[2]), text)
    return _PUTTY.sub(lambda found: found[1] + hide(found[2]), text) if "Private-Lines" in text else text


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
        start, end, at_quote = _between_quotes(text, found.end())
        if (
            found[2] and not at_quote and not name.startswith("-")
        ):  # "the token is": only an option has its value so
            continue
        value = None if at_quote else _VALUE.match(text, found.end())
        if value is not None and value[0].lower() in _LITERALS and found[1]:  # `password: str = "x"`
            value = _TYPED.match(text, value.end())
        if value is None and not at_quote:
            continue
        if value is not None:
            start, end = value.span(value.lastindex or 0)
            call = re.compile(r"\w{1,40}\(").match(text, start, start + 41)
            if call is not None:  # SecretStr("x"), not getpass("Password: ")
                start, end, at_quote = _between_quotes(text, call.end())
                if not at_quote or call[0] in ("getpass(", "input(", "prompt("):
                    continue
        secret = text[start:end]
        at = max(end, at_quote)
        in_words = not name.startswith("-") and not found[1]  # PASSWORD 'x' of SQL, and `the token "x" is`
        if in_words and not re.search(r"[\d!@#$%^&* ]", secret) and not name.isupper():
            continue
        if secret.endswith(":") and "\n" in mark:
            continue
        named = mark.lstrip("\\")[:1] in ("'", '"') and at_quote and not name.startswith("-")
        if (
            (named or _is_named_secret(name, mark, secret))
            and not _NO_VALUE.fullmatch(secret)
            and text[end : end + 1] not in ("(", "[")
        ):
            yield text[done:start]
            yield hide(secret)
            done = end
    yield text[done:]


def _between_quotes(text: str, at: int) -> tuple[int, int, int]:
    """Return where a value between quotes begins and ends, and where its quote does; 0 for what is not between two.

    The quote may be escaped, as in JSON within JSON: it ends with one that is escaped as often.
    """
    first = _QUOTE.match(text, at)
    if first is None or not first[2]:
        return 0, 0, 0
    for quote in _QUOTE.finditer(text, first.end(), first.end() + _LONGEST_VALUE):
        if not quote[2]:
            break
        if quote[2] == first[2] and len(quote[1]) <= len(first[1]):
            return first.end(), quote.start(), quote.end()
    return 0, 0, 0


def _is_named_secret(name: str, mark: str, value: str) -> bool:
    if name.lower() in ("pin", "login", "code"):
        return name.startswith("-") or value.isdigit()
    is_word = name.lower().endswith("token") or name.lower() in ("pass", "pw")
    return not _NO_VALUE.fullmatch(value) and (not is_word or _is_token(mark, value))


def _is_token(mark: str, value: str) -> bool:
    """Return whether it is no number of tokens, and no line of a program: `token = ids[i]`, `f(token=next_token)`."""
    if re.fullmatch(r"[\d.]{1,9}|[A-Za-z_.]+", value):
        return False
    return "= " not in mark or len(value) >= 16


def mask_command(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return a command with its secrets hidden, and what they are. `--password x`, `--token=x`, `API_KEY=x`, and
    tokens.
    """
    masked: list[str] = []
    values: list[str] = []

    def hide(value: str) -> str:
        values.append(value)
        return HIDDEN

    is_value = False
    of_programs = dict(program_secrets(words))
    for number, word in enumerate(words):
        if (at := of_programs.get(number)) is not None:
            masked.append(word[:at] + _hide_value(word[at:], hide))
            is_value = False
            continue
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
    """Return plain data, or dataclasses, without the secrets of a command; short ones only next to their name."""
    return cast("_T", _hide_in(value, secrets)) if secrets else value


def _hide_in(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            if secret in value:
                short = len(secret) < MIN_CHARACTERS_ANYWHERE
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
    """Return whether it is a number of tokens or of passes, and no token."""
    return option.lower().endswith(("token", "-pass")) and re.fullmatch(r"[\d.]{1,9}", value) is not None
