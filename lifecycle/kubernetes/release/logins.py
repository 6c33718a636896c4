"""Registry logins as secrets in accounts' namespaces, for pods' images; no plan shows a password.

A secret's annotation has the version of the password in the cluster's vault that it was created
from. So `plan` reads no password and `up` writes one only where it has changed.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence

import msgspec

from ....inventory.compile.kubernetes_objects.accounts import registries_of
from ....inventory.compile.kubernetes_objects.facts import KubernetesFacts
from ....inventory.compile.kubernetes_objects.objects import (
    DOMAIN,
    FIELD_MANAGER,
    SYSTEM_NAMESPACE,
    Object,
    new,
    owned,
)
from ....schemas.spec import RegistryLogin
from ...secrets.makers import secret_versions
from ...secrets.vault import SecretVault
from ..kubectl import Kubectl, rows
from ..objects import DIGEST

LOGIN_LABEL = f"{DOMAIN}/registry"
"""On each of these secrets, with the name of the login in the spec."""
FIELDS = {
    "namespace": "{.metadata.namespace}",
    "name": "{.metadata.name}",
    "digest": "{.metadata.annotations." + DIGEST.replace(".", "\\.") + "}",
}


class SecretChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between the Secrets that there are to be and those that there are."""

    stale: Mapping[tuple[str, str], str] = {}
    """(namespace, name) -> hash of what it is to be made from."""
    gone: tuple[tuple[str, str], ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """Return it as a plan shows it."""
        apply = [f"apply Secret: {', '.join(map('/'.join, self.stale))}"] if self.stale else []
        remove = [f"remove Secret: {', '.join(map('/'.join, self.gone))}"] if self.gone else []
        return (*apply, *remove)

    @property
    def exact(self) -> tuple[str, ...]:
        """Return it with all that would be written, without a password."""
        return (
            *(f"apply Secret {'/'.join(key)} {digest}" for key, digest in self.stale.items()),
            *(f"delete Secret {'/'.join(key)}" for key in self.gone),
        )


def existing_digests(kubectl: Kubectl, *of: str) -> dict[tuple[str, str], str]:
    """Return (namespace, name) of Secrets -> hash of what each was made from.

    Args:
        kubectl: the API server.
        of: which Secrets: namespace and selector, as options of kubectl.

    Raises:
        ApiSilent, ApiRefused: see `Kubectl.text`.
    """
    found = rows(kubectl, "secrets", *of, fields=FIELDS)
    return {(row["namespace"], row["name"]): row["digest"] for row in found}


def apply_secrets(kubectl: Kubectl, made: Sequence[Object]) -> None:
    """Write Secrets, on standard input: no argument has what they hold.

    Raises:
        ApiSilent, ApiRefused: see `Kubectl.text`; the message holds no password.
    """
    if made:
        listed = {"apiVersion": "v1", "kind": "List", "items": made}
        words = ("apply", "--server-side", "--force-conflicts", f"--field-manager={FIELD_MANAGER}")
        kubectl.text(*words, "--filename=-", stdin=msgspec.json.encode(listed).decode())


def login_changes(kubectl: Kubectl, vault: SecretVault, facts: KubernetesFacts) -> SecretChanges:
    """Compare the existing secrets with those of the spec.

    Raises:
        ApiSilent, ApiRefused: see `Kubectl.text`.
        LifecycleError: the state can't be read.
    """
    wanted = _wanted(facts)
    names = tuple(sorted({name for _, name in wanted}))
    versions = secret_versions(vault, facts.spec, names) if names else {}
    digests = {key: _digest(one, versions[key[1]]) for key, one in wanted.items()}
    there = existing_digests(kubectl, "--all-namespaces", f"--selector={LOGIN_LABEL}")
    return SecretChanges(
        stale={key: digest for key, digest in digests.items() if there.get(key) != digest},
        gone=tuple(sorted(there.keys() - digests.keys())),
    )


def settle_logins(
    kubectl: Kubectl,
    vault: SecretVault,
    facts: KubernetesFacts,
    changes: SecretChanges,
    *,
    prune: bool = True,
) -> None:
    """Write the secrets that differ; remove those that the spec dropped.

    Raises:
        ApiSilent, ApiRefused: see `Kubectl.text`; the message holds no password.
        LifecycleError: a password can't be decrypted.
    """
    wanted = _wanted(facts)
    made = [
        owned(_secret(key, wanted[key], vault.reveal(key[1]).decode(), digest), facts.spec.name)
        for key, digest in changes.stale.items()
    ]
    apply_secrets(kubectl, made)
    for namespace, name in changes.gone if prune else ():
        kubectl.text("delete", "secret", name, f"--namespace={namespace}", "--ignore-not-found")


def _wanted(facts: KubernetesFacts) -> dict[tuple[str, str], RegistryLogin]:
    return {
        (namespace, name): one
        for namespace in (SYSTEM_NAMESPACE, *facts.accounts)
        for name, one in registries_of(facts, namespace).items()
    }


def _digest(one: RegistryLogin, version: str) -> str:
    """Return a hash of all that a secret is made from, of the password its version."""
    content = json.dumps([one.server, one.username, version])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def _secret(key: tuple[str, str], one: RegistryLogin, password: str, digest: str) -> Object:
    """Return a login as kubelets read it (Kubernetes, "Pull an Image from a Private Registry")."""
    namespace, name = key
    both = base64.b64encode(f"{one.username}:{password}".encode()).decode()
    login = {"username": one.username, "password": password, "auth": both}
    config = json.dumps({"auths": {one.server: login}}).encode()
    return new(
        "v1",
        "Secret",
        name,
        namespace=namespace,
        labels={LOGIN_LABEL: name},
        annotations={DIGEST: digest},
        type="kubernetes.io/dockerconfigjson",
        data={".dockerconfigjson": base64.b64encode(config).decode()},
    )
