"""The systemd unit that runs the agent where the cloud rights are."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from string import Template

_UNIT = Template(
    """\
# Written by `gcluster burst agent --unit`. To install it, as root:
#   gcluster burst agent $target --unit > /etc/systemd/system/gcluster-burst.service
#   systemctl enable --now gcluster-burst
# Its events: journalctl --unit gcluster-burst --output cat
[Unit]
Description=gcluster burst agent of $target
Wants=network-online.target
After=network-online.target

[Service]
User=$user
$environment
WorkingDirectory=$folder
ExecStart=$program burst agent $target --interval $interval
# It ends when the spec was applied again, and begins again with that.
Restart=always
RestartSec=10
# 2 and 64: the spec or the command is wrong, and stays so. 6, another agent holds the lock, passes.
RestartPreventExitStatus=2 64
# How gcluster ends when it is told to stop.
SuccessExitStatus=130
# Calls to a cloud may take minutes; killed, they are gone on with.
TimeoutStopSec=30
KillMode=mixed
NoNewPrivileges=true
ProtectSystem=full
PrivateTmp=false

[Install]
WantedBy=multi-user.target
"""
)
_KEPT = ("HOME", "PATH", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
"""Where gcluster finds its keys, and the tools it calls; nothing secret."""


def unit_file(target: str, user: str, interval: str) -> str:
    """Return the unit for this user, this installation and this cluster.

    Args:
        target: path of a spec, or name of a cluster.
        user: whose cloud login and keys the agent has.
        interval: as `--interval` takes it.
    """
    path = Path(target)
    kept = (f'Environment="{key}={_kept(key)}"' for key in _KEPT if key in os.environ)
    return _UNIT.substitute(
        target=_word(str(path.resolve()) if path.exists() else target),
        user=user,
        environment="\n".join(kept),
        folder=_plain(str(path.resolve().parent)) if path.exists() else "~",
        program=_word(str(Path(sys.executable).with_name("gcluster"))),
        interval=interval,
    )


def _plain(text: str) -> str:
    """Return a text as systemd leaves it: a % begins a specifier (systemd.unit(5))."""
    return text.replace("%", "%%")


def _word(text: str) -> str:
    """Return one argument of a command line, in which $ begins a variable (systemd.service(5))."""
    return shlex.quote(_plain(text).replace("$", "$$"))


def _kept(key: str) -> str:
    return _plain(os.environ[key]).replace("\\", "\\\\").replace('"', '\\"')
