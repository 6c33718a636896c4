"""SSH to the machines of a site: the login key, the server's rules, host keys, tunnels.

The login key is generated once on this machine, or is the site's own. New machines publish their
host key through their cloud, and machines whose key was not read that way are not connected to.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from ...inventory.hosts import Host
from ...schemas.diagnostics import Diagnostic, Severity
from ...schemas.structure.decoding import decode_json
from ..provider import provider_error
from . import atomic


def ensure_client_key(directory: Path) -> Path:
    """Return the cluster's private key on this machine; make it the first time, 0600.

    Raises:
        ProviderError: ssh-keygen isn't installed or failed.
    """
    private = directory / "id_ed25519"
    with atomic.locked(directory / ".key.lock"):
        if not private.exists():
            directory.chmod(0o700)
            with TemporaryDirectory(dir=directory) as scratch:
                made = Path(scratch) / "key"
                _keygen(made)
                made.with_suffix(".pub").replace(public_key_path(private))
                made.replace(private)
    return private


def write_client_key(directory: Path, key: bytes) -> Path:
    """Lay out a private key that was made before, with its public half; return the private one.

    Raises:
        ProviderError: ssh-keygen isn't installed, or can't read the key.
    """
    private = directory / "id_ed25519"
    with atomic.locked(directory / ".key.lock"):
        if private.exists() and private.read_bytes() == key and public_key_path(private).exists():
            return private
        directory.chmod(0o700)
        atomic.write(private, key)
        public = _ssh_keygen(["-y", "-f", str(private)])
        atomic.write(public_key_path(private), public.encode())
    return private


def public_key_path(private: Path) -> Path:
    """Return where the public key of `private` is."""
    return private.with_name(private.name + ".pub")


def _keygen(target: Path) -> None:
    _ssh_keygen(["-q", "-t", "ed25519", "-N", "", "-C", "gcluster", "-f", str(target)])


def _ssh_keygen(options: list[str]) -> str:
    try:
        return subprocess.run(
            ["ssh-keygen", *options], check=True, capture_output=True, text=True, timeout=30
        ).stdout
    except FileNotFoundError:
        raise provider_error(
            "GC910", "ssh-keygen is not installed", hint="sudo apt-get install -y openssh-client"
        ) from None
    except subprocess.CalledProcessError as error:
        raise provider_error("GC911", f"ssh-keygen failed: {error.stderr.strip()}") from None


def public_text(private: Path) -> str:
    """Return the public key of `private`, which nodes authorize.

    Raises:
        ProviderError: GC968, it is not next to the private one.
    """
    public = public_key_path(private)
    try:
        return public.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise provider_error(
            "GC968",
            f"the public key {public} can't be read: {error.strerror}",
            hint=f"ssh-keygen -y -f {private} > {public}",
        ) from None


SSHD_FILE = "/etc/ssh/sshd_config.d/10-gcluster.conf"
"""Before what images and cloud-init write (50-, 60-): of each setting the first value counts."""

SSHD_RULES = """\
# written by gcluster at the first start
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
X11Forwarding no
MaxSessions 64
MaxStartups 128:30:256
"""
"""No password, no root, and room for a whole cluster to be reached through one machine.

A stock sshd drops logins at random from the eleventh that is under way (MaxStartups 10:30:100).
"""

_RELOAD = "systemctl try-reload-or-restart"
SSHD_RELOAD = f"{_RELOAD} ssh.service || {_RELOAD} sshd.service"
"""Shell that has a running server take them up. Ubuntu 22.10 and later start the server with the
first connection (ssh.socket): one that doesn't run yet needs nothing, and refuses `reload`."""


BEGIN = "-----BEGIN SSH HOST KEY KEYS-----"
END = "-----END SSH HOST KEY KEYS-----"
"""How cloud-init's module keys_to_console marks the keys on the console."""
_LAST_LINES = 8


def cloud_config(
    *, user: str, authorized_key: str, more: Mapping[str, object] | None = None
) -> str:
    """Return the cloud-config of a node.

    Args:
        user: login user; may become root without a password.
        authorized_key: public key that may log in.
        more: further modules of cloud-init, by their key.
    """
    config = {
        "users": [
            {
                "name": user,
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "shell": "/bin/bash",
                "lock_passwd": True,
                "ssh_authorized_keys": [authorized_key],
            }
        ],
        "disable_root": True,
        "ssh_pwauth": False,
        "ssh_deletekeys": True,
        "ssh_genkeytypes": ["ed25519"],
        "ssh": {"emit_keys_to_console": True},
        "write_files": [
            {
                "path": SSHD_FILE,
                "permissions": "0644",
                "content": SSHD_RULES,
            }
        ],
        **(more or {}),
    }
    # cloud-config is YAML, and JSON is YAML: no quoting of ours can go wrong.
    return f"#cloud-config\n{json.dumps(config, indent=1)}\n"


def host_keys(console: str) -> tuple[str, ...]:
    """Return the public host keys that a console shows last, () while there are none.

    Lines may carry what the console puts before them ("ci-info: ", "[  12.3] cloud-init[9]: ").
    """
    _, found, rest = console.rpartition(BEGIN)
    if not found or END not in rest:
        return ()
    lines = rest.partition(END)[0].splitlines()
    keys = (_key(line) for line in lines)
    return tuple(key for key in keys if key)


def _key(line: str) -> str:
    """Return "TYPE BASE64" out of a line, "" where there is none."""
    words = line.split()
    for kind, key in pairwise(words):
        if kind.startswith(("ssh-", "ecdsa-sha2-")) and key.startswith("AAAA"):
            return f"{kind} {key}"
    return ""


def last_lines(console: str) -> tuple[str, ...]:
    """Return the end of a console's output: a machine's last messages."""
    lines = [line.strip() for line in console.splitlines() if line.strip()]
    return tuple(lines[-_LAST_LINES:])


_AT_ONCE = 8
"""Machines queried at the same time: an account's request rate is shared by all its users."""
_PAUSE_S = 10.0


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """How long a provider waits, and its progress callback."""

    patience_s: float = 0.0
    """Seconds from the first poll until machines without a key count as silent."""
    progress: Callable[[int, int], None] = lambda _done, _total: None
    """Called after each poll with the number of machines with a key, and the total."""
    pause_s: float = _PAUSE_S
    at_once: int = _AT_ONCE


class HostKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What machines have shown."""

    keys: dict[str, tuple[str, ...]] = {}
    """Machine -> public host keys."""
    silent: dict[str, float] = {}
    """Machine -> seconds that it was waited for in vain."""


def await_host_keys(
    machines: Iterable[str],
    read: Callable[[str], tuple[str, ...]],
    *,
    cache: Path,
    waiting: Waiting | None = None,
) -> HostKeys:
    """Return the host keys of machines, and which showed none.

    Keys are kept in `cache`: a console holds its last part only, and a machine never changes its
    key. A different key means another machine, or an attacker in between.

    Args:
        machines: ids in the cloud, which are never reused.
        read: reads the keys of one machine; () where there are none yet.
        cache: file on this machine; machines without a key are in a file next to it.
        waiting: how long; None: one poll.
    """
    waiting = waiting or Waiting()
    ids = list(dict.fromkeys(machines))
    silence = cache.with_suffix(".silent.json")
    known, gave_up = _keys(cache), _silent(silence)
    until = time.monotonic() + waiting.patience_s
    while missing := [i for i in ids if i not in known]:
        with ThreadPoolExecutor(min(waiting.at_once, len(missing))) as pool:
            found = dict(zip(missing, pool.map(read, missing), strict=True))
        new = {i: keys for i, keys in found.items() if keys}
        known = _merge(cache, new) if new else known
        waiting.progress(sum(i in known for i in ids), len(ids))
        left = [i for i in missing if i not in known and i not in gave_up]
        if not left or time.monotonic() >= until:
            break
        time.sleep(min(waiting.pause_s, max(0.0, until - time.monotonic())))
    silent = {i: gave_up.get(i, waiting.patience_s) for i in ids if i not in known}
    if silent != {i: gave_up[i] for i in ids if i in gave_up}:
        with atomic.locked(cache.with_suffix(".lock")):
            others = {i: s for i, s in _silent(silence).items() if i not in ids}
            atomic.write(silence, msgspec.json.encode(others | silent))
    return HostKeys(keys={i: tuple(known[i]) for i in ids if i in known}, silent=silent)


def silence(waited_s: float, title: str) -> str:
    """Return why a machine that showed no key is not connected to, in one line.

    Args:
        waited_s: the wait in seconds.
        title: the cloud's display name.
    """
    return f"it showed no host key through {title} within {waited_s:.0f} s, and is not waited for"


def with_silence(
    hosts: Iterable[Host],
    silent: Mapping[str, float],
    title: str,
    console: Callable[[str], tuple[str, ...]] = lambda _: (),
) -> tuple[Host, ...]:
    """Return hosts, those that showed no key with the reason why they are not connected to.

    Args:
        hosts: of a site.
        silent: name -> the wait in seconds.
        title: the cloud's display name.
        console: returns the last lines of a host's console.
    """
    return tuple(
        msgspec.structs.replace(
            host, silent=silence(silent[host.name], title), last_lines=console(host.name)
        )
        if host.name in silent
        else host
        for host in hosts
    )


def _merge(cache: Path, new: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Add keys; what another process has read first stays."""
    with atomic.locked(cache.with_suffix(".lock")):
        known = {**new, **_keys(cache)}
        atomic.write(cache, msgspec.json.encode(known))
    return known


def _keys(cache: Path) -> dict[str, tuple[str, ...]]:
    with suppress(FileNotFoundError, msgspec.MsgspecError):
        return decode_json(cache.read_bytes(), dict[str, tuple[str, ...]])
    return {}


def _silent(path: Path) -> dict[str, float]:
    with suppress(FileNotFoundError, msgspec.MsgspecError):
        return decode_json(path.read_bytes(), dict[str, float])
    return {}


_PROGRAMS = {
    "iap": ("gcloud",),
    "instance-connect": ("aws",),
    "ssm": ("aws", "session-manager-plugin"),
}
"""Tunnel -> commands that it takes here, as `ssh.tunnel` names it."""
_INSTALL = {
    "gcloud": "https://cloud.google.com/sdk/docs/install",
    "aws": "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
    "session-manager-plugin": "https://docs.aws.amazon.com/systems-manager/latest/userguide/"
    "session-manager-working-with-install-plugin.html",
}


def missing_programs(site: str, tunnel: str | None) -> tuple[Diagnostic, ...]:
    """Return one finding for each command that a site's tunnel takes and this machine lacks."""
    return tuple(
        Diagnostic(
            code="GC1072",
            severity=Severity.ERROR,
            summary=f'the tunnel to site "{site}" takes the command {program}, which is not here',
            hint=f"install it ({_INSTALL[program]}), or name another way in",
            path=("sites", site, "ssh", "tunnel"),
        )
        for program in _PROGRAMS.get(tunnel or "", ())
        if shutil.which(program) is None
    )
