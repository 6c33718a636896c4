"""The systemd unit and the container file that run the controller."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template

import gcluster

from .git import Repository

_UNIT = Template(
    """\
# Written by `gcluster reconcile unit`. To install it, as root:
#   gcluster reconcile unit $options > /etc/systemd/system/gcluster-reconcile.service
#   systemctl enable --now gcluster-reconcile
# What happens: journalctl --unit gcluster-reconcile --output cat
[Unit]
Description=gcluster follows $repo
Wants=network-online.target
After=network-online.target

[Service]
User=$user
$environment
ExecStart=$program reconcile $options
Restart=always
RestartSec=30
# 64: the command is wrong, and stays so.
RestartPreventExitStatus=64
# What is under way on a cluster ends first; killed, the next round goes on with it.
TimeoutStopSec=900
KillMode=mixed
NoNewPrivileges=true
ProtectSystem=full
PrivateTmp=false

[Install]
WantedBy=multi-user.target
"""
)
_CONTAINER = Template(
    """\
# Written by `gcluster reconcile unit --container`.
#   podman build --tag gcluster-reconcile --file Containerfile .
#   podman run --name gcluster-reconcile --hostname gcluster-reconcile \\
#     --volume gcluster:/var/lib/gcluster --volume ./known_hosts:/etc/ssh/ssh_known_hosts:ro \\
#     --secret repository-key,target=/run/key,mode=0400,uid=10001 \\
#     --env GIT_SSH_COMMAND='ssh -i /run/key -o BatchMode=yes -o StrictHostKeyChecking=yes' \\
#     gcluster-reconcile
# The volume holds keys and copies of the repository. A cloud's rights come by the machine's
# identity, and its SDK with an extra: --build-arg GCLUSTER='gcluster[aws]==$version'.
ARG BASE=docker.io/library/debian:13-slim
FROM $${BASE}
# What pip installs: a requirement, or a wheel beside this file (./gcluster-$version-...whl).
ARG GCLUSTER=gcluster==$version
RUN apt-get update \\
 && apt-get install --yes --no-install-recommends \\
    ca-certificates git openssh-client python3 python3-venv tini \\
 && rm -rf /var/lib/apt/lists/* \\
 && useradd --uid 10001 --home-dir /var/lib/gcluster --create-home gcluster \\
 && python3 -m venv /opt/gcluster
RUN --mount=type=bind,target=/from \\
    cd /from && /opt/gcluster/bin/pip install --no-cache-dir "$${GCLUSTER}"
ENV PATH=/opt/gcluster/bin:/usr/bin:/bin HOME=/var/lib/gcluster
USER 10001
WORKDIR /var/lib/gcluster
VOLUME /var/lib/gcluster
STOPSIGNAL SIGTERM
ENTRYPOINT ["tini", "--", "gcluster", "reconcile", $words]
"""
)
_KEPT = ("HOME", "PATH", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
"""Where gcluster finds its keys, and the tools it calls; nothing secret."""


def unit_file(options: Mapping[str, str], user: str) -> str:
    """Return the unit for this user and this installation.

    Args:
        options: of `gcluster reconcile`, without their dashes.
        user: whose keys and cloud login the controller has.

    Raises:
        LifecycleError: a URL or branch that isn't taken (GC1130).
    """
    _refuse(options)
    kept = (f'Environment="{key}={os.environ[key]}"' for key in _KEPT if key in os.environ)
    words = shlex.join(_arguments(options))
    return _UNIT.substitute(
        repo=options["repo"].replace("%", "%%"),
        options=words.replace("%", "%%"),  # systemd's own specifiers
        user=user,
        environment="\n".join(kept),
        program=shlex.quote(str(Path(sys.executable).with_name("gcluster"))),
    )


def container_file(options: Mapping[str, str]) -> str:
    """Return the container file that runs this version. Raises as `unit_file`."""
    _refuse(options)
    words = ", ".join(f'"{_escaped(word)}"' for word in _arguments(options))
    return _CONTAINER.substitute(version=gcluster.__version__, words=words)


def _refuse(options: Mapping[str, str]) -> None:
    Repository(options["repo"], options["branch"], Path())


def _arguments(options: Mapping[str, str]) -> list[str]:
    return [word for name, value in options.items() for word in (f"--{name}", value)]


def _escaped(word: str) -> str:
    return word.replace("\\", "\\\\").replace('"', '\\"')
