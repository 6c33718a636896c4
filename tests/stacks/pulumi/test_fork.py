"""Ansible starts in the process that has talked to the engine: gRPC doesn't end its children."""

from __future__ import annotations

import os
import subprocess
import sys

_PROGRAM = """
import gcluster.stacks.pulumi
from concurrent.futures import ThreadPoolExecutor
import grpc, pexpect

server = grpc.server(ThreadPoolExecutor(4))
server.add_insecure_port("127.0.0.1:0")
server.start()
for _ in range(20):
    child = pexpect.spawn("/bin/echo", ["hello"])
    child.expect(pexpect.EOF)
    child.close()
    assert (child.before.strip(), child.exitstatus) == (b"hello", 0), child
"""


def test_a_terminal_that_is_started_with_grpc_loaded_runs_its_program() -> None:
    unset = {k: v for k, v in os.environ.items() if k != "GRPC_ENABLE_FORK_SUPPORT"}
    environment = {**unset, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, env=environment,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
