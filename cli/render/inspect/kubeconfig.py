"""Text of `gcluster kubeconfig`: what was written, until when it is good, and how it is used."""

from __future__ import annotations

import shlex

from ....lifecycle.kubernetes.access import Access
from ...console import printable


def access_text(access: Access) -> str:
    """Return the file, its rights and its end, and the line to type next."""
    rights = "administrator" if access.account is None else f'account "{access.account}"'
    until = "uses your cloud login" if access.ends is None else f"until {access.ends:%F %H:%M} UTC"
    lines = [f"✔ {printable(access.path)}   {printable(access.user)} as {rights}, {until}"]
    if access.issuer:
        at = f"logs in at {printable(access.issuer)}"
        space = "" if access.account is None else f", in account {access.account}'s namespace"
        lines = [f"✔ {printable(access.path)}   {at}{space}; needs kubectl's plugin oidc-login"]
    if access.tunnel:
        lines.append(f"open the tunnel first:\n  {access.tunnel}")
    elif not access.reachable:
        lines.append(
            f"{access.server} does not answer from this machine: "
            "run it again with --tunnel 6443 to go through SSH"
        )
    first = "nodes" if access.account is None and not access.issuer else "jobs"
    lines.append(f"  export KUBECONFIG={shlex.quote(access.path)}; kubectl get {first}")
    return "\n".join(lines)
