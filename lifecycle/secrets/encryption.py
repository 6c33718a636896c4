"""Key rotation: warn where the spec names another key provider than the state, and re-encrypt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ...schemas.diagnostics import Diagnostic, Severity
from ..cluster.outcome import Exit, LifecycleError
from ..cluster.progress import Reporter, StageProgress
from .ciphertexts import reencrypt

if TYPE_CHECKING:
    from ..cluster.cluster import Cluster
    from ..up.run import Run


class RotatedEncryption(msgspec.Struct, frozen=True, kw_only=True):
    """How a change of who encrypts ended."""

    cluster: str
    before: str
    """Who wrapped the data key: "age (env:KEY)"."""
    after: str
    count: int
    """Secrets that were re-encrypted, of each all versions, and saved queues."""
    exit_code: Exit = Exit.OK


def rotate_encryption(run: Run, report: Reporter) -> RotatedEncryption:
    """Encrypt all that is stored for a new data key, wrapped as the spec says; offline.

    Raises:
        LifecycleError: there is nothing (GC908), or one of both providers can't be used: then
            nothing was changed.
    """
    cluster = run.cluster

    def progress(detail: str) -> None:
        report(StageProgress(name="rotate", done=0, total=0, detail=detail))

    done = reencrypt(cluster.store, cluster.vault.keyring, progress)
    return RotatedEncryption(
        cluster=cluster.name, before=done.before, after=done.after, count=done.count
    )


def other_provider(cluster: Cluster) -> tuple[Diagnostic, ...]:
    """Return a warning where the spec's provider or key differs from that of the state's secrets.

    Also where a change was begun and is unfinished. Needs no key.
    """
    keyring = cluster.vault.keyring
    records = keyring.records()
    if not records:
        return ()
    newest = records[max(records)]
    hint = f"gcluster rotate encryption {cluster.spec_path}"
    if not keyring.provider.is_of(newest):
        summary = f"secrets are encrypted by {newest.by}, and the spec says {keyring.provider.by}"
    elif len(records.keys() - keyring.pending_deletion()) > 1:
        summary = f"secrets are being changed to {newest.by}, and that was interrupted"
    else:
        return ()
    return (Diagnostic(code="GC1164", severity=Severity.WARNING, summary=summary, hint=hint),)


def refuse_other_provider(cluster: Cluster) -> None:
    """Go on where the spec's provider is the one that the secrets have.

    Raises:
        LifecycleError: it is another (GC1164).
    """
    found = other_provider(cluster)
    if found:
        errors = (msgspec.structs.replace(one, severity=Severity.ERROR) for one in found)
        raise LifecycleError(*errors, exit_code=Exit.REFUSED)
