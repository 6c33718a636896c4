"""The SSH server's rules that every machine of a cloud is started with, before any role runs."""

from __future__ import annotations

FILE = "/etc/ssh/sshd_config.d/10-gcluster.conf"
"""Before what images and cloud-init write (50-, 60-): of each setting the first value counts."""

RULES = """\
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
RELOAD = f"{_RELOAD} ssh.service || {_RELOAD} sshd.service"
"""Shell that has a running server take them up. Ubuntu 22.10 and later start the server with the
first connection (ssh.socket): one that doesn't run yet needs nothing, and refuses `reload`."""
