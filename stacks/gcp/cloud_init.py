"""What a node does on its first start: authorize a key, harden sshd, publish its host keys.

All of Google's images run a start-up script and take login keys from metadata (the guest agent
does both); not all have cloud-init. So this is a script, which runs at each start.
"""

from __future__ import annotations

from ..io.ssh import SSHD_FILE, SSHD_RELOAD, SSHD_RULES

_SCRIPT = f"""\
#!/bin/sh
# Of gcluster: as far as SSH, everything else is done over it. No secret may stand here.
set -eu
mkdir -p /etc/ssh/sshd_config.d
cat > {SSHD_FILE} <<'END'
{SSHD_RULES}END
grep -q '^Include /etc/ssh/sshd_config.d/' /etc/ssh/sshd_config ||
  sed -i '1i Include /etc/ssh/sshd_config.d/*.conf' /etc/ssh/sshd_config
ssh-keygen -A
mkdir -p -m 0755 /run/sshd
sshd -t
{SSHD_RELOAD}
# The node's own public keys, where only who may read the instance can read them.
for file in /etc/ssh/ssh_host_*_key.pub; do
  kind=$(cut -d ' ' -f 1 "$file")
  cut -d ' ' -f 2 "$file" | curl -sSf --retry 5 -X PUT -H 'Metadata-Flavor: Google' \\
    --data-binary @- \\
    "http://metadata.google.internal/computeMetadata/v1/instance/guest-attributes/hostkeys/$kind"
done
"""

HOST_KEYS = "hostkeys"
"""Namespace of guest attributes in which Google's own agents publish host keys too."""


def metadata(user: str, login_key: str) -> dict[str, str]:
    """Return the metadata of every node of a site.

    Args:
        user: login user; the guest agent makes it and lets it become root.
        login_key: public key that may log in, one line.

    Raises:
        ValueError: the key is not one line of a public key.
    """
    words = login_key.split()
    if "\n" in login_key.strip() or len(words) < 2 or "PRIVATE" in login_key:  # noqa: PLR2004  # type and text
        message = "the login key is not a public key of one line"
        raise ValueError(message)
    return {
        "block-project-ssh-keys": "TRUE",
        "enable-guest-attributes": "TRUE",
        "enable-oslogin": "FALSE",
        "serial-port-enable": "FALSE",
        "ssh-keys": f"{user}:{words[0]} {words[1]} {user}",
        "startup-script": _SCRIPT,
    }
