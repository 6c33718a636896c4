"""The start script itself, run by a shell with stand-ins for what changes a machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from gcluster.stacks.gcp import cloud_init


def test_a_shell_runs_the_script_twice_and_every_public_key_is_told(tmp_path: Path) -> None:
    ssh = tmp_path / "etc" / "ssh"
    ssh.mkdir(parents=True)
    (ssh / "sshd_config").write_text("Port 22\n")
    (ssh / "ssh_host_ed25519_key.pub").write_text("ssh-ed25519 AAAAC3 root@node\n")
    (ssh / "ssh_host_ed25519_key").write_text("a private key\n")
    tools, told = tmp_path / "bin", tmp_path / "told"
    tools.mkdir()
    for name in ("ssh-keygen", "sshd", "systemctl"):
        (tools / name).write_text("#!/bin/sh\n")
    curl = f'#!/bin/sh\nfor last; do :; done\necho "$last $(cat)" >> {told}\n'
    (tools / "curl").write_text(curl)
    for tool in tools.iterdir():
        tool.chmod(0o755)
    text = cloud_init.metadata("ops", "ssh-ed25519 AAAA")["startup-script"]
    script = tmp_path / "start.sh"
    script.write_text(text.replace("/etc/ssh", str(ssh)))
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    for _ in range(2):
        subprocess.run(["/bin/sh", script], check=True, env={"PATH": path})
    include = f"Include {ssh}/sshd_config.d/*.conf"
    assert (ssh / "sshd_config").read_text() == f"{include}\nPort 22\n"
    assert "PasswordAuthentication no" in (ssh / "sshd_config.d/10-gcluster.conf").read_text()
    address = "http://metadata.google.internal/computeMetadata/v1/instance/guest-attributes"
    assert told.read_text() == f"{address}/hostkeys/ssh-ed25519 AAAAC3\n" * 2
