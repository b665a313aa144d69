"""Modal's control plane and one of its workers, as far as profkit's client goes: the real client talks to it by gRPC.

python modal_server.py FOLDER        prints its port; it needs the package `modal` 1.6.4, whose protocol this is
"""

# ruff: noqa: N802 - what it answers is called as it is there
from __future__ import annotations

import asyncio
import functools
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from google.protobuf.empty_pb2 import Empty
from grpclib import GRPCError, Status
from grpclib.server import Server, Stream
from modal_container import Container  # type: ignore[import-not-found]
from modal_proto import api_pb2 as api
from modal_proto import task_command_router_pb2 as worker
from modal_proto.api_grpc import ModalClientBase
from modal_proto.task_command_router_grpc import TaskCommandRouterBase

TOKEN = "eyJhbGciOiJub25lIn0.eyJleHAiOjk5OTk5OTk5OTl9."
RESULT = api.GenericResult
STATUS = {
    124: RESULT.GENERIC_STATUS_TIMEOUT,
    137: RESULT.GENERIC_STATUS_TERMINATED,
    0: RESULT.GENERIC_STATUS_SUCCESS,
}
THREADS = ThreadPoolExecutor(32)


def all_else_unimplemented(base: type) -> type:
    """A service that knows no call: what a subclass answers it answers by `NAME(self, request)`."""

    async def call(self: Any, stream: Stream[Any, Any], name: str) -> None:
        answer = getattr(self, f"on_{name}", None)
        if answer is None:
            raise GRPCError(Status.UNIMPLEMENTED, name)
        request = await stream.recv_message()
        if hasattr(answer, "streams"):
            async for message in answer(request):
                await stream.send_message(message)
        else:
            await stream.send_message(await answer(request))

    def method(name: str) -> Any:
        async def handle(self: Any, stream: Stream[Any, Any]) -> None:
            await call(self, stream, name)

        return handle

    return type(base.__name__, (base,), {name: method(name) for name in base.__abstractmethods__})  # type: ignore[attr-defined]


def streams(function: Any) -> Any:
    function.streams = True
    return function


class ControlPlane(all_else_unimplemented(ModalClientBase)):  # type: ignore[misc]
    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, 0
        self.container: Any = None

    async def on_ClientHello(self, request: Any) -> Any:
        return api.ClientHelloResponse()

    async def on_AuthTokenGet(self, request: Any) -> Any:
        return api.AuthTokenGetResponse(token=TOKEN)

    async def on_AppCreate(self, request: Any) -> Any:
        assert request.app_state == api.APP_STATE_EPHEMERAL
        return api.AppCreateResponse(app_id="ap-1")

    async def on_EnvironmentGetOrCreate(self, request: Any) -> Any:
        settings = api.EnvironmentSettings(image_builder_version="2025.06")
        metadata = api.EnvironmentMetadata(name="main", settings=settings)
        return api.EnvironmentGetOrCreateResponse(environment_id="en-1", metadata=metadata)

    async def on_AppPublish(self, request: Any) -> Any:
        return api.AppPublishResponse()

    async def on_AppHeartbeat(self, request: Any) -> Any:
        return Empty()

    async def on_AppClientDisconnect(self, request: Any) -> Any:
        (self.folder / "left").touch()
        return Empty()

    async def on_MountGetOrCreate(self, request: Any) -> Any:
        return api.MountGetOrCreateResponse(mount_id="mo-1")

    async def on_ImageGetOrCreate(self, request: Any) -> Any:
        with (self.folder / "image").open("a") as file:
            file.write("\n".join(request.image.dockerfile_commands) + "\n")
        done = RESULT(status=RESULT.GENERIC_STATUS_SUCCESS)
        return api.ImageGetOrCreateResponse(image_id="im-1", result=done)

    async def on_SandboxCreate(self, request: Any) -> Any:
        while (self.folder / "hang").exists():
            await asyncio.sleep(0.05)
        if (self.folder / "full").exists():
            raise GRPCError(Status.RESOURCE_EXHAUSTED, "Insufficient capacity to create sandbox.")
        wanted = request.definition
        gpu = wanted.resources.gpu_config
        asked = {
            "gpu": gpu.gpu_type + (f":{gpu.count}" if gpu.count > 1 else ""),
            "cpu": [wanted.resources.milli_cpu / 1000, wanted.resources.milli_cpu_max / 1000],
            "memory": [wanted.resources.memory_mb, wanted.resources.memory_mb_max],
            "timeout": wanted.timeout_secs,
            "idle_timeout": wanted.idle_timeout_secs,
            **({"secrets": list(wanted.secret_ids)} if wanted.secret_ids else {}),
        }
        self.container = Container(self.folder, list(wanted.entrypoint_args), asked)
        return api.SandboxCreateResponse(sandbox_id="sb-" + "1" * 22)

    async def on_SandboxGetTaskId(self, request: Any) -> Any:
        return api.SandboxGetTaskIdResponse(task_id="ta-1")

    async def on_TaskGetCommandRouterAccess(self, request: Any) -> Any:
        return api.TaskGetCommandRouterAccessResponse(jwt=TOKEN, url=f"http://127.0.0.1:{self.port}")

    async def on_SandboxStdinWrite(self, request: Any) -> Any:
        self.container.beat()
        return api.SandboxStdinWriteResponse()

    async def on_SandboxWait(self, request: Any) -> Any:
        code = self.container.code
        if code is None:
            return api.SandboxWaitResponse()
        status = STATUS.get(code, RESULT.GENERIC_STATUS_FAILURE)
        return api.SandboxWaitResponse(result=RESULT(status=status, exitcode=code))

    async def on_SandboxTerminate(self, request: Any) -> Any:
        await asyncio.get_running_loop().run_in_executor(THREADS, self.container.end, 137)
        return api.SandboxTerminateResponse()


class Worker(all_else_unimplemented(TaskCommandRouterBase)):  # type: ignore[misc]
    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.started: dict[str, subprocess.Popen[bytes]] = {}

    async def _do(self, function: Any, *words: Any) -> Any:
        if self.plane.container.code is not None:
            raise GRPCError(Status.NOT_FOUND, "this task has ended")
        return await asyncio.get_running_loop().run_in_executor(THREADS, functools.partial(function, *words))

    async def on_TaskExecStart(self, request: Any) -> Any:
        assert not request.env
        assert not request.secret_sources
        words = list(request.command_args)
        self.started[request.exec_id] = await self._do(self.plane.container.exec, words)
        return worker.TaskExecStartResponse()

    @streams
    async def on_TaskExecStdioRead(self, request: Any) -> Any:
        child = self.started[request.exec_id]
        out = request.file_descriptor == worker.TASK_EXEC_STDIO_FILE_DESCRIPTOR_STDOUT
        pipe: Any = child.stdout if out else child.stderr
        while piece := await self._do(os.read, pipe.fileno(), 1 << 16):
            yield worker.TaskExecStdioReadResponse(data=piece)
        if self.plane.container.code is not None:
            raise GRPCError(Status.NOT_FOUND, "this task has ended")

    async def on_TaskExecStdinWrite(self, request: Any) -> Any:
        pipe: Any = self.started[request.exec_id].stdin
        await self._do(pipe.write, request.data)
        await self._do(pipe.close if request.eof else pipe.flush)
        return worker.TaskExecStdinWriteResponse()

    async def on_TaskExecWait(self, request: Any) -> Any:
        code = await self._do(self.started[request.exec_id].wait)
        return (
            worker.TaskExecWaitResponse(signal=-code) if code < 0 else worker.TaskExecWaitResponse(code=code)
        )


async def main(folder: Path) -> None:
    plane = ControlPlane(folder)
    server = Server([plane, Worker(plane)])
    await server.start("127.0.0.1", 0)
    plane.port = server._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    print(plane.port, flush=True)
    await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
