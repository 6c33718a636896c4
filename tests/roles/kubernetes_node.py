"""A folder that simulates a node, where programs of the role kubernetes run over doubles."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

LIBEXEC = Path(__file__).parents[2] / "roles/kubernetes/files/libexec"


_PATHS = ("/etc/kubernetes", "/run/", "/var/log/gcluster", "/var/lib/", '/usr/bin")', "/etc/hosts",
          "/usr/local/libexec", "/usr/bin/kubelet")  # fmt: skip


class Node:
    """A folder in place of a node's root, and programs that write down how they were called."""

    def __init__(self, root: Path) -> None:
        """Make the folder of programs."""
        self.root, self.bin = root, root / "bin"
        self.instead: dict[str, str] = {}
        """Text of the programs -> its replacement in a test: how long they wait."""
        self.bin.mkdir()

    def double(self, name: str, script: str) -> None:
        """Let a program answer as the script does; its calls are in the file `calls`."""
        path = self.bin / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>{self.root}/calls\n{script}\n')
        path.chmod(0o755)

    def run(self, program: str, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """Run a program of the role with its absolute paths in this folder."""
        text = (LIBEXEC / program).read_text(encoding="utf-8")
        for path in _PATHS:
            text = text.replace(f'"{path}', f'"{self.root}{path}')
        for part, other in self.instead.items():
            assert part in text
            text = text.replace(part, other)
        done = subprocess.run(
            ["python3", "-c", text, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"},
        )
        return done.returncode, done.stdout, done.stderr

    def shell(self, line: str, stdin: str = "") -> tuple[int, str, str]:
        """Run a line of the shell with its absolute paths in this folder."""
        for path in ("/etc/kubernetes", "/var/lib/gcluster"):
            line = line.replace(path, f"{self.root}{path}")
        done = subprocess.run(
            ["sh", "-c", line],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"},
        )
        return done.returncode, done.stdout, done.stderr

    def calls(self) -> list[str]:
        """Return how the doubles were called, in order."""
        path = self.root / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def write(self, path: str, text: str = "") -> Path:
        """Write a file of the node."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file


def a_node(root: Path) -> Node:
    """Return a node with what a host has before it joins."""
    found = Node(root)
    (root / "run").mkdir()
    found.write("etc/kubernetes/gcluster/join.yaml", 'token: "@TOKEN@"\nhash: "@CA_HASH@"\n')
    found.double("kubeadm", "")
    found.double("kubectl", "echo ok")
    found.double("systemctl", "")
    return found
