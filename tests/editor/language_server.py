"""A client of a language server over its standard input and output, as an editor is one."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_PATIENCE_S = 60
"""The server compiles the schema on first use; a machine under load takes its time."""


class LanguageServer:
    """One running server. Requests are answered in order; diagnostics come when they come."""

    def __init__(self, program: Path, folder: Path) -> None:
        """Start the server for a folder."""
        self._process = subprocess.Popen(
            ["node", str(program), "--stdio"],  # of the PATH, as in editors
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
        )
        self._answers: queue.Queue[Any] = queue.Queue()
        self._diagnostics: queue.Queue[Any] = queue.Queue()
        self._number = 0
        threading.Thread(target=self._listen, daemon=True).start()
        self.request(
            "initialize",
            {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}},
        )
        self._send({"method": "initialized", "params": {}})
        self._send(
            {
                "method": "workspace/didChangeConfiguration",
                "params": {
                    "settings": {
                        "yaml": {"schemaStore": {"enable": False}, "hover": True, "validate": True}
                    }
                },
            }
        )

    def open(self, file: Path, text: str) -> list[dict[str, Any]]:
        """Open a document and return what the server finds wrong with it."""
        document = {"uri": file.as_uri(), "languageId": "yaml", "version": 1, "text": text}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        while True:
            found = self._diagnostics.get(timeout=_PATIENCE_S)
            if found["uri"] == file.as_uri():
                return list(found["diagnostics"])

    def at(self, what: str, file: Path, line: int, column: int) -> Any:
        """Request hover or completion at a place (both from 0)."""
        place = {
            "textDocument": {"uri": file.as_uri()},
            "position": {"line": line, "character": column},
        }
        return self.request(f"textDocument/{what}", place)

    def request(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request and return its result."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            answer = self._answers.get(timeout=_PATIENCE_S)
            if answer.get("id") == self._number:
                return answer.get("result")

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _listen(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while header := stream.readline():
            length = int(header.split(b":")[1])
            while stream.readline().strip():
                pass
            message = json.loads(stream.read(length))
            if message.get("method") == "textDocument/publishDiagnostics":
                self._diagnostics.put(message["params"])
            elif "method" in message and "id" in message:
                nothing = [{}] if message["method"] == "workspace/configuration" else None
                self._send({"id": message["id"], "result": nothing})
            elif "id" in message:
                self._answers.put(message)

    def __enter__(self) -> Self:
        """Give the running server."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
