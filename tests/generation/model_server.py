"""A scripted model on the loopback: it speaks the dialects of OpenAI and of Anthropic, and fails as real ones do.

    with ModelServer(["an answer", rate_limited(1), cut("half of it"), "another answer"]) as server:
        server.openai_url, server.anthropic_url   # what --base-url takes
        server.requests                           # what it was sent

A script is a list, of which each request takes the next reply, or a function of the request: with several
conversations at once, their order is not known.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

import pytest

from profkit.generation.model import ChatMessage

Dialect = Literal["openai", "anthropic"]
Ending = Literal["end", "length", "refused"]
MODEL = "made-up-1"
FINISH = {"end": "stop", "length": "length", "refused": "content_filter"}
REASONS = {"end": "end_turn", "length": "max_tokens", "refused": "refusal"}
# Not pytest.importorskip: to load them takes two seconds, and every process that collects tests would.
needs_packages = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("openai", "anthropic"))), reason="needs pip install 'profkit[llm]'"
)


@dataclass(frozen=True)
class Reply:
    """What a request gets: a status with an error, or `text`."""

    text: str = ""
    ending: Ending = "end"
    thinking: str = ""  # comes before the text, and is no part of it
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""  # of an error: its type
    code: str = ""  # of an error, in OpenAI's dialect
    message: str = ""  # of an error
    broken: bool = False  # the connection is closed in the midst of the answer
    before: float = 0.0  # seconds until the first byte
    page: bool = False  # no JSON, but HTML


@dataclass(frozen=True)
class Request:
    """What the server was sent."""

    dialect: Dialect
    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Mapping[str, Any]
    number: int  # from 0

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The conversation; the system's text is a message in either dialect."""
        system = self.body.get("system")
        first = [ChatMessage("system", system)] if system else []
        return (*first, *(ChatMessage(entry["role"], entry["content"]) for entry in self.body["messages"]))

    @property
    def prompt(self) -> str:
        """The last message of the user."""
        return self.messages[-1].text

    @property
    def text(self) -> str:
        """The whole conversation."""
        return "\n\n".join(message.text for message in self.messages)


Script = Sequence[Reply | str] | Callable[[Request], Reply | str]


def rate_limited(after: float = 0.01) -> Reply:
    """429, with how long to wait."""
    headers = {"retry-after": str(after)}
    return Reply(status=429, headers=headers, kind="rate_limit_error", message="Rate limit reached.")


def failed(status: int = 500, message: str = "Internal error", **fields: Any) -> Reply:
    """An error of the server."""
    return Reply(status=status, kind="api_error", message=message, **fields)


def bad_key(key: str = "") -> Reply:
    """401, which echoes parts of the key, as services do."""
    echo = f"{key[:8]}{'*' * 20}{key[-4:]}" if key else "(none)"
    return Reply(status=401, kind="authentication_error", code="invalid_api_key",
                 message=f"Incorrect API key provided: {echo}.")  # fmt: skip


class ModelServer:
    """Serves on 127.0.0.1 until the block ends. A request beyond the script gets a 400 that says so."""

    def __init__(self, script: Script) -> None:
        self.requests: list[Request] = []
        self.connections: set[socket.socket] = set()
        self._script = script
        self._lock = threading.Lock()
        self.closing = threading.Event()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads = True
        self._http.block_on_close = False
        self._http.model_server = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        return self.url

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        for connection in list(self.connections):  # that a client keeps for its next request
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def reply_to(self, dialect: Dialect, path: str, headers: Mapping[str, str], body: Any) -> Reply:
        """The reply that is next, or that the script's function chooses."""
        with self._lock:
            number = len(self.requests)
            request = Request(dialect, path, headers, body, number)
            self.requests.append(request)
        if callable(self._script):
            reply = self._script(request)
        elif number < len(self._script):
            reply = self._script[number]
        else:
            message = f"the script of this server has {len(self._script)} replies"
            reply = Reply(status=400, kind="invalid_request_error", message=message)
        return Reply(reply) if isinstance(reply, str) else reply


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is gone is no error here; what a script's function raises is."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def model_server(self) -> ModelServer:
        return self.server.model_server  # type: ignore[attr-defined, no-any-return]

    def setup(self) -> None:
        super().setup()
        self.model_server.connections.add(self.connection)

    def finish(self) -> None:
        self.model_server.connections.discard(self.connection)
        super().finish()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        if path.endswith("/chat/completions"):
            dialect: Dialect = "openai"
        elif path == "/v1/messages":
            dialect = "anthropic"
        else:
            self._send_json(404, {"error": {"message": f"no {self.path} here", "type": "not_found_error"}})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.model_server.reply_to(dialect, self.path, headers, body)
        self.model_server.closing.wait(reply.before)
        try:
            if reply.status != 200:
                self._send_json(reply.status, _error(dialect, reply), reply.headers)
            elif reply.page:
                self._send(200, b"<html>Welcome</html>", {"content-type": "text/html"})
            else:
                self._send_json(200, _answer(dialect, reply, body), broken=reply.broken)
        except OSError:  # the client went away
            self.close_connection = True

    def _send_json(
        self, status: int, document: object, headers: Mapping[str, str] | None = None, *, broken: bool = False
    ) -> None:
        content = json.dumps(document).encode()
        self._send(status, content, {**(headers or {}), "content-type": "application/json"}, broken=broken)

    def _send(self, status: int, content: bytes, headers: Mapping[str, str], *, broken: bool = False) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if broken else content)
        if broken:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing on the terminal."""


def _tokens(body: Mapping[str, Any], reply: Reply) -> tuple[int, int]:
    """What went in and came out, as this server counts: its words."""
    words = sum(len(str(entry["content"]).split()) for entry in body["messages"])
    return words + len(str(body.get("system", "")).split()), len((reply.thinking + " " + reply.text).split())


def _error(dialect: Dialect, reply: Reply) -> dict[str, object]:
    error = {"type": reply.kind, "message": reply.message}
    if dialect == "openai":
        return {"error": {**error, "code": reply.code or None}}
    return {"type": "error", "error": error, "request_id": "req_made_up"}


def _answer(dialect: Dialect, reply: Reply, body: Mapping[str, Any]) -> dict[str, object]:
    went_in, came_out = _tokens(body, reply)
    head = {"id": "made-up", "model": body["model"]}
    if dialect == "openai":
        message = {"role": "assistant", "content": reply.text, "reasoning_content": reply.thinking}
        choice = {"index": 0, "message": message, "finish_reason": FINISH[reply.ending]}
        usage = {"prompt_tokens": went_in, "completion_tokens": came_out, "total_tokens": went_in + came_out}
        return {**head, "object": "chat.completion", "created": 0, "choices": [choice], "usage": usage}
    thinking = [{"type": "thinking", "thinking": reply.thinking, "signature": ""}] if reply.thinking else []
    return {
        **head,
        "type": "message",
        "role": "assistant",
        "content": [*thinking, {"type": "text", "text": reply.text}],
        "stop_reason": REASONS[reply.ending],
        "stop_sequence": None,
        "usage": {"input_tokens": went_in, "output_tokens": came_out},
    }
