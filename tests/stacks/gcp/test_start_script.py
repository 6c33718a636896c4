"""The start script itself, run by a shell with doubles of what changes a machine."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from gcluster.stacks.gcp import cloud_init

SSHD = """\
[ -d /run/sshd ] || { echo "Missing privilege separation directory: /run/sshd" >&2; exit 255; }
"""
INACTIVE = """\
case "$1" in
reload) echo "ssh.service is not active, cannot reload." >&2; exit 1 ;;
try-reload-or-restart) exit 0 ;;
esac
exit 64
"""
"""As on Ubuntu 24.04 before the first login: ssh.socket listens, ssh.service doesn't run."""


def test_a_shell_runs_the_script_twice_and_every_public_key_is_reported(tmp_path: Path) -> None:
    ssh = tmp_path / "etc" / "ssh"
    ssh.mkdir(parents=True)
    (ssh / "sshd_config").write_text("Port 22\n")
    (ssh / "ssh_host_ed25519_key.pub").write_text("ssh-ed25519 AAAAC3 root@node\n")
    (ssh / "ssh_host_ed25519_key").write_text("a private key\n")
    tools, answer = tmp_path / "bin", tmp_path / "told"
    tools.mkdir()
    (tools / "ssh-keygen").write_text("#!/bin/sh\n")
    (tools / "sshd").write_text(f"#!/bin/sh\n{SSHD}".replace("/run/sshd", str(tmp_path / "run")))
    (tools / "systemctl").write_text(f"#!/bin/sh\n{INACTIVE}")
    curl = f'#!/bin/sh\nfor last; do :; done\necho "$last $(cat)" >> {answer}\n'
    (tools / "curl").write_text(curl)
    for tool in tools.iterdir():
        tool.chmod(0o755)
    text = cloud_init.metadata("ops", "ssh-ed25519 AAAA")["startup-script"]
    script = tmp_path / "start.sh"
    text = text.replace("/run/sshd", str(tmp_path / "run"))
    script.write_text(text.replace("/etc/ssh", str(ssh)))
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    for _ in range(2):
        subprocess.run(["/bin/sh", script], check=True, env={"PATH": path})
    include = f"Include {ssh}/sshd_config.d/*.conf"
    assert (ssh / "sshd_config").read_text() == f"{include}\nPort 22\n"
    assert "PasswordAuthentication no" in (ssh / "sshd_config.d/10-gcluster.conf").read_text()
    address = "http://metadata.google.internal/computeMetadata/v1/instance/guest-attributes"
    assert answer.read_text() == f"{address}/hostkeys/ssh-ed25519 AAAAC3\n" * 2
