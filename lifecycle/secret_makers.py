"""How each secret of a cluster is made, where it doesn't exist yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gcluster.inventory.compile.self_converge import SIGNERS_SECRET
from gcluster.lifecycle.state import SecretVault, munge_key

if TYPE_CHECKING:
    from collections.abc import Callable

_MAKERS = {"munge": munge_key}


def maker(vault: SecretVault, cluster: str, secret: str) -> Callable[[], bytes]:
    """Return what makes a secret; nodes know the signer of their bundles by its public half."""
    if secret != SIGNERS_SECRET:
        return _MAKERS[secret]
    from gcluster.lifecycle.pull.keys import (  # noqa: PLC0415  # only large clusters pull
        KEY_SECRET,
        signers,
        signing_key,
    )

    vault.ensure(KEY_SECRET, signing_key)
    return lambda: signers(vault.reveal(KEY_SECRET), cluster)
