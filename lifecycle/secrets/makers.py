"""How each secret of a cluster is made, where it doesn't exist yet."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ...inventory.compile.hooks import hook_secrets
from ...inventory.compile.kubernetes import ENCRYPTION_SECRET
from ...inventory.compile.kubernetes_objects.accounts import REGISTRY_PREFIX
from ...inventory.compile.network.links import KEY_PREFIX, PEERS_PREFIX
from ...inventory.compile.slurm.accounting import DATABASE_SECRET
from ...inventory.compile.slurm.scheduling import JWT_SECRET
from ...inventory.compile.system.access import DIRECTORY_SECRET
from ...inventory.compile.system.monitoring import (
    ALERTS_PREFIX,
    AUTHORITY_SECRET,
    EXPORTER_NAME,
    EXPORTER_SECRET,
    PASSWORD_SECRET,
    REMOTE_SECRET,
    SERVER_NAME,
    SERVER_SECRET,
)
from ...inventory.compile.system.self_converge import SIGNERS_SECRET
from ...schemas.spec import ClusterSpec, DirectoryUsers, KubernetesScheduler, SlurmScheduler
from ..cluster.outcome import LifecycleError, failure
from ..operations.gitops.pull.bundle import KEY_SECRET, signers, signing_key
from .certificates import certificate_of, issue, new_authority
from .references import UnreadableSecret, read_reference
from .vault import SecretVault, munge_key

if TYPE_CHECKING:
    from ..cluster.cluster import Cluster

_PASSWORD_BYTES = 24


def _password() -> bytes:
    """Return a new password: 48 hexadecimal digits, which any file and any SQL can hold."""
    return secrets.token_hex(_PASSWORD_BYTES).encode()


_JWT_BYTES = 32


def _jwt_key() -> bytes:
    """Return a new HS256 key: 256 random bits, as long as its hash (RFC 7518, 3.2)."""
    return secrets.token_bytes(_JWT_BYTES)


_ENCRYPTION_BYTES = 32


def _encryption_key() -> bytes:
    """Return a new key of secretbox (XSalsa20 and Poly1305, 32 bytes) as Kubernetes reads it."""
    return base64.b64encode(secrets.token_bytes(_ENCRYPTION_BYTES))


_MAKERS = {
    "munge": munge_key,
    DATABASE_SECRET: _password,
    JWT_SECRET: _jwt_key,
    ENCRYPTION_SECRET: _encryption_key,
    PASSWORD_SECRET: _password,
}
_MONITORING_CA = "monitoring-ca"
"""The authority of monitoring with its key: it is given to no node."""
ISSUED = {
    EXPORTER_SECRET: ((EXPORTER_NAME,), ("server",)),
    SERVER_SECRET: ((SERVER_NAME, "localhost", "127.0.0.1", "::1"), ("server", "client")),
}
"""Secret -> the names that its certificate is for, and what it is good for."""


def provided_secrets(spec: ClusterSpec) -> dict[str, str]:
    """Return secret -> its reference in the spec (`references.py`)."""
    slurm, users = spec.scheduler, spec.users
    accounting = slurm.accounting if isinstance(slurm, SlurmScheduler) else None
    found = {
        DATABASE_SECRET: accounting.password if accounting else None,
        DIRECTORY_SECRET: users.bind_password if isinstance(users, DirectoryUsers) else None,
    }
    given = {name: reference for name, reference in found.items() if reference is not None}
    return given | hook_secrets(spec) | _registry_passwords(spec) | _alert_secrets(spec)


def _alert_secrets(spec: ClusterSpec) -> dict[str, str]:
    """Return what reaches the receivers of alerts, and of all metrics."""
    monitoring = spec.monitoring
    alerts = monitoring.alerts if monitoring is not None else None
    references = {} if alerts is None else alerts.references
    found = {f"{ALERTS_PREFIX}{name}": reference for name, reference in references.items()}
    remote = monitoring.remote_write if monitoring is not None else None
    if remote is not None and remote.password is not None:
        found[REMOTE_SECRET] = remote.password
    return found


def _registry_passwords(spec: ClusterSpec) -> dict[str, str]:
    """Return the passwords of registries of images, which no step of a node needs."""
    if not isinstance(spec.scheduler, KubernetesScheduler):
        return {}
    return {f"{REGISTRY_PREFIX}{name}": o.password for name, o in spec.scheduler.registries.items()}


def keep_passwords(vault: SecretVault, spec: ClusterSpec) -> None:
    """Read the passwords of registries, and keep them encrypted in the state.

    Raises:
        LifecycleError: one can't be read, and none is kept (GC959).
    """
    make_secrets(vault, spec, tuple(sorted(_registry_passwords(spec))))


def read_provided(name: str, reference: str, *, is_kept: bool) -> bytes | None:
    """Return a secret that the spec refers to; None: it isn't here, and what is stored is used.

    Raises:
        LifecycleError: it can't be read, and none is kept (GC959).
    """
    try:
        value = read_reference(reference).strip()
    except UnreadableSecret as error:
        if is_kept and error.is_absent:
            return None
        why = str(error)
    else:
        if value:
            return value.encode()
        why = "it is empty"
    raise failure(
        "GC959",
        f"the secret {name} of the spec, {reference}, can't be used: {why}",
        hint="set it and run the command again",
    )


def secret_versions(
    vault: SecretVault, spec: ClusterSpec, names: tuple[str, ...]
) -> dict[str, str]:
    """Return secret -> version id; "new": not made yet, or the spec's has another value by now."""
    found = {name: vault.version(name) or "new" for name in names}
    for name, reference in provided_secrets(spec).items():
        if found.get(name, "new") == "new":
            continue
        with suppress(LifecycleError):  # it, or the key, isn't here: what is stored is used
            value = read_provided(name, reference, is_kept=True)
            if value is not None and value != vault.reveal(name):
                found[name] = "new"
    return found


def make_secrets(vault: SecretVault, spec: ClusterSpec, names: tuple[str, ...]) -> None:
    """Make the secrets that don't exist; those that the spec refers to are read and kept instead.

    Raises:
        LifecycleError: one that the spec refers to can't be read, and none is kept (GC959).
    """
    given = provided_secrets(spec)
    for name in names:
        if name.startswith(PEERS_PREFIX):
            store_peers(vault, name)
        elif name not in given:
            vault.ensure(name, maker(vault, spec.name, name))
        elif (
            value := read_provided(name, given[name], is_kept=vault.version(name) is not None)
        ) is not None:
            vault.keep(name, value)


def maker(vault: SecretVault, cluster: str, secret: str) -> Callable[[], bytes]:
    """Return the function that creates a secret; nodes verify bundles with its public key."""
    if secret.startswith(KEY_PREFIX):
        return tunnel_key
    if secret == AUTHORITY_SECRET or secret in ISSUED:
        return _certificate_maker(vault, cluster, secret)
    if secret != SIGNERS_SECRET:
        return _MAKERS[secret]
    vault.ensure(KEY_SECRET, signing_key)
    return lambda: signers(vault.reveal(KEY_SECRET), f"converge@{cluster}")


def _certificate_maker(vault: SecretVault, cluster: str, secret: str) -> Callable[[], bytes]:
    """Return what makes a certificate of monitoring, or shows nodes who issues them."""
    vault.ensure(_MONITORING_CA, lambda: new_authority(cluster))
    if secret == AUTHORITY_SECRET:
        return lambda: certificate_of(vault.reveal(_MONITORING_CA))
    return lambda: issue(vault.reveal(_MONITORING_CA), *ISSUED[secret])


def trust_another_authority(vault: SecretVault, cluster: str) -> None:
    """Make a new authority of monitoring; hosts trust it, and those that they trusted before."""
    authority = new_authority(cluster)
    vault.keep(AUTHORITY_SECRET, vault.reveal(AUTHORITY_SECRET) + certificate_of(authority))
    vault.keep(_MONITORING_CA, authority)


def issue_by_newest_authority(vault: SecretVault) -> None:
    """Make all certificates of monitoring again, and the password of its servers; those it has."""
    for name, what in ISSUED.items():
        if vault.version(name) is not None:
            vault.keep(name, issue(vault.reveal(_MONITORING_CA), *what))
    if vault.version(PASSWORD_SECRET) is not None:
        vault.keep(PASSWORD_SECRET, _password())


def trust_newest_authority_alone(vault: SecretVault) -> None:
    """End the trust in all authorities of monitoring but the newest."""
    vault.keep(AUTHORITY_SECRET, certificate_of(vault.reveal(_MONITORING_CA)))


def tunnel_key() -> bytes:
    """Return a new private key as `wg genkey` prints it: 32 bytes in base64, and a line's end."""
    return base64.b64encode(X25519PrivateKey.generate().private_bytes_raw()) + b"\n"


def public_key(private: bytes) -> str:
    """Return the public half as `wg pubkey` prints it, without the line's end."""
    key = X25519PrivateKey.from_private_bytes(base64.b64decode(private))
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def store_peers(vault: SecretVault, name: str) -> None:
    """Keep the public keys of the gateways that a secret is named after, as JSON by their pools.

    Their private keys are made where they are missing; where one was rotated since, this is
    another version of the secret.
    """
    found = {}
    for pool in name.removeprefix(PEERS_PREFIX).split("."):
        vault.ensure(KEY_PREFIX + pool, tunnel_key)
        found[pool] = public_key(vault.reveal(KEY_PREFIX + pool))
    vault.keep(name, json.dumps(found, sort_keys=True).encode())


def rotate_tunnel_keys(vault: SecretVault, secrets: tuple[str, ...]) -> None:
    """Rotate the private keys among these secrets, and the lists that name them."""
    for name in secrets:
        if name.startswith(KEY_PREFIX):
            vault.keep(name, tunnel_key())
    for name in secrets:
        if name.startswith(PEERS_PREFIX):
            store_peers(vault, name)


NAME = "pulumi"
"""Of the secret in the vault."""
_BYTES = 32
"""As many as the key of AES-256-GCM, which the engine derives from the passphrase."""


def read_passphrase(cluster: Cluster) -> str:
    """Return the passphrase; "" while none was made.

    Raises:
        LifecycleError: the key is missing, or another than the cluster's (GC905).
    """
    if cluster.vault.version(NAME) is None:
        return ""
    return cluster.vault.reveal(NAME).decode()


def make_passphrase(cluster: Cluster) -> str:
    """Return the passphrase, made at first use: 32 random bytes as base64. Only for a run."""
    cluster.vault.ensure(NAME, lambda: base64.b64encode(secrets.token_bytes(_BYTES)))
    return read_passphrase(cluster)
