"""TLS in front of a file service: a tunnel on the node for each mount, by stunnel.

As amazon-efs-utils and Microsoft's aznfs do it for their services: the client mounts 127.0.0.1 at a
port of its own, and stunnel checks the service's certificate and its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .files import text_of, write_text
from .node import is_active, run
from .state import Failed

CONFIGURATIONS = Path("/etc/stunnel")
AUTHORITIES = (
    Path("/etc/ssl/certs/ca-certificates.crt"),
    Path("/etc/pki/tls/certs/ca-bundle.crt"),
)
"""What Debian's family trusts, and Red Hat's: the roots of Amazon and Microsoft are in both."""
UNITS = Path("/etc/systemd/system")
HEAD = "; Written by gcluster for NFS. Changes made here are lost; change the spec.\n"
PREFIX = "gcluster-nfs-"
UNIT = f"{PREFIX}tls@.service"
UNIT_TEXT = f"""\
# Written by gcluster for NFS. Changes made here are lost; change the spec.
[Unit]
Description=TLS to the file service of %i
Wants=network-online.target
After=network-online.target
Before=remote-fs-pre.target
StartLimitIntervalSec=0
[Service]
# It listens before it goes to the background: what is started after it finds its port open.
Type=forking
ExecStart=/usr/bin/stunnel {CONFIGURATIONS}/{PREFIX}%i.conf
Restart=always
RestartSec=1
DynamicUser=yes
[Install]
WantedBy=multi-user.target
"""

Mount = dict[str, Any]


def unit_of_tunnel(mount: Mount) -> str:
    """Return the unit of a mount's tunnel; "" for one without TLS."""
    return f"{PREFIX}tls@{mount['tls']}.service" if mount.get("tls") else ""


def text_of_tunnel(mount: Mount) -> str:
    """Return stunnel's configuration.

    Idle connections are closed after 70 s and a busy peer given up after 20 s, as in
    amazon-efs-utils (efs_utils_common/metadata.py, STUNNEL_EFS_CONFIG); `delay` looks the name up
    for each connection.

    Args:
        mount: with server, tls and tls_port.
    """
    server = mount["server"]
    trusted = next((path for path in AUTHORITIES if path.exists()), AUTHORITIES[0])
    return (
        f"{HEAD}pid =\ndebug = notice\nsocket = l:SO_REUSEADDR=yes\n\n[{mount['tls']}]\n"
        f"client = yes\naccept = 127.0.0.1:{mount['tls_port']}\nconnect = {server}:2049\n"
        f"sslVersionMin = TLSv1.2\nCAfile = {trusted}\nverifyChain = yes\n"
        f"checkHost = {server}\ndelay = yes\n"
        "TIMEOUTbusy = 20\nTIMEOUTclose = 0\nTIMEOUTidle = 70\n"
    )


def _configuration(name: str) -> Path:
    return CONFIGURATIONS / f"{PREFIX}{name}.conf"


def open_tunnels(mounts: Sequence[Mount], *, act: bool) -> Iterator[str]:
    """Start the tunnels that mounts need, again where they changed; yield the changes.

    Raises:
        Failed: one doesn't start.
    """
    wanted = [mount for mount in mounts if mount.get("tls")]
    unit_changed = bool(wanted) and write_text(UNITS / UNIT, UNIT_TEXT, act=act) is not None
    if unit_changed and act:
        run("systemctl", "daemon-reload")
    for mount in wanted:
        text, unit = text_of_tunnel(mount), unit_of_tunnel(mount)
        changed = write_text(_configuration(mount["tls"]), text, act=act) is not None
        if not changed and not unit_changed and is_active(unit):
            continue
        yield f"TLS to {mount['server']}, for {mount['path']}"
        if not act:
            continue
        run("systemctl", "enable", unit)
        code, output = run("systemctl", "restart", unit)
        if code:
            _, logged = run("journalctl", "--unit", unit, "--output=cat", "--lines=4", "--no-pager")
            raise Failed(f"TLS to {mount['server']} doesn't start: {logged or output}")


def close_tunnels(mounts: Sequence[Mount], *, act: bool) -> Iterator[str]:
    """Remove tunnels that no mount needs any more; yield the changes."""
    kept = {_configuration(mount["tls"]) for mount in mounts if mount.get("tls")}
    for path in sorted(CONFIGURATIONS.glob(f"{PREFIX}*.conf")):
        if path in kept or not text_of(path).startswith(HEAD):
            continue
        name = path.stem.removeprefix(PREFIX)
        yield f"no TLS tunnel any more: {name}"
        if act:
            run("systemctl", "disable", "--now", unit_of_tunnel({"tls": name}))
            path.unlink()


def tunnel_differences(mounts: Sequence[Mount]) -> Iterator[str]:
    """Yield what is wrong with the tunnels."""
    for mount in mounts:
        if not mount.get("tls"):
            continue
        if text_of(_configuration(mount["tls"])) != text_of_tunnel(mount):
            yield f"{_configuration(mount['tls'])} is not as written"
        if not is_active(unit_of_tunnel(mount)):
            yield f"{mount['path']} has no TLS: {unit_of_tunnel(mount)} isn't running"
