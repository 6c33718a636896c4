"""API access for a user: a private key of this machine and a short-lived client certificate.

The key never leaves this machine. The certificate is requested as for any client (Kubernetes,
"Certificate Signing Requests", signer kube-apiserver-client) and names a user and a group; their
rights are in the roles that the spec compiles to. Kubernetes can't revoke a certificate, so it is
short-lived, and an account's member has rights by name alone.
"""

from __future__ import annotations

import base64
import re
import secrets
import shlex
import socket
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ...inventory.compile.kubernetes_objects.accounts import GROUP_PREFIX, ROLE
from ...inventory.hosts import ClusterInventory
from ...schemas.spec import ClusterSpec, KubernetesScheduler, Oidc
from ...stacks.io import atomic
from ..cluster.outcome import Exit, LifecycleError, failure
from ..nodes.ssh import SshSession
from .kubectl import ApiRefused, ApiSilent, Kubectl, kubeconfig_document
from .managed.login import FILE, kubectl_of

ADMIN_GROUP = "kubeadm:cluster-admins"
"""The group that kubeadm binds to cluster-admin, since 1.29."""
SIGNER = "kubernetes.io/kube-apiserver-client"
SHORTEST_S = 600
"""The shortest lifetime that the API server accepts (certificates.k8s.io/v1,
`expirationSeconds`).
"""
LONGEST_S = 30 * 86400
_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]*")
"""Without a colon: names with `system:` are Kubernetes' own."""
_OIDC_USER = "oidc"
"""The kubeconfig's own name for the person who logs in at the identity provider."""
_SIGNED_WITHIN_S = 30
_CONNECTS_WITHIN_S = 3.0
_CLUSTER = "{.clusters[0].cluster.server} {.clusters[0].cluster.certificate-authority-data}"
"""Of admin.conf: where the API is and who signs for it, and nothing secret."""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """A kubeconfig that was written, and whether it works from here."""

    cluster: str
    path: str
    user: str
    account: str | None
    """Whose namespace it works in; None: the whole cluster's administrator."""
    ends: datetime | None
    """When its certificate expires; None: the cloud's login is used each time."""
    server: str
    reachable: bool
    """Whether something answers at the server's address from this machine."""
    tunnel: str = ""
    """The line that opens a way there through SSH, where one is needed."""
    issuer: str = ""
    """Identity provider that the file logs in at; "": it holds a certificate, or uses a cloud's."""


def grant(
    spec: ClusterSpec,
    hosts: ClusterInventory,
    session: SshSession,
    folder: Path,
    *,
    user: str,
    account: str | None = None,
    lifetime_s: int = 8 * 3600,
    tunnel_port: int | None = None,
    out: Path | None = None,
    oidc: bool = False,
) -> Access:
    """Write a kubeconfig for a user, with file mode 0600.

    Args:
        spec: of the running cluster.
        hosts: its existing machines.
        session: SSH to its control planes.
        folder: the cluster's own on this machine; the file goes there where `out` is None.
        user: the name that the API server's audit log shows.
        account: the account whose rights it has; None: those of the administrator.
        lifetime_s: how long the certificate is good, in seconds.
        tunnel_port: port of this machine where a tunnel will begin; None: no tunnel.
        out: the file to write.
        oidc: log in at the spec's identity provider; the file is then the same for all people, and
            holds no secret.

    Raises:
        LifecycleError: the cluster runs no Kubernetes, has no such account or member, its API
            doesn't respond, or signs nothing (GC1073).
    """
    scheduler = spec.scheduler
    if not isinstance(scheduler, KubernetesScheduler):
        raise _refused(f"{spec.name} runs Slurm: there is no API to get a kubeconfig for")
    login = _login(spec, scheduler) if oidc else None
    group = _group(scheduler, account, None if oidc else user)
    name = f"{spec.name}-{account or ('oidc' if oidc else 'admin')}"
    path = out or folder / f"kubeconfig-{name.removeprefix(f'{spec.name}-')}"
    if hosts.is_managed:
        return _managed(spec, folder, account, path, user, login)
    kubectl = kubectl_of(session, hosts)
    try:
        server, authority = kubectl.text(
            "config", "view", "--raw", f"--output=jsonpath={_CLUSTER}"
        ).split()
        key, certificate = b"", b""
        if login is None:
            key, request = _request(user, group)
            certificate = sign(kubectl, request, user=user, lifetime_s=lifetime_s)
    except (ApiSilent, ApiRefused, ValueError) as error:
        raise _refused(f"the API of {spec.name} gives no access: {error}") from error
    cluster = _reached(server, hosts) | {"certificate-authority-data": authority}
    server, line = cluster["server"], ""
    if tunnel_port is not None:
        at = urlsplit(server)
        name_there = cluster.get("tls-server-name", at.hostname or "")
        cluster |= {"server": f"https://127.0.0.1:{tunnel_port}", "tls-server-name": name_there}
        line = _forwarding(session, hosts, f"127.0.0.1:{tunnel_port}:{at.netloc}")
    credentials: dict[str, Any] = {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
    if login is not None:
        user, credentials = _OIDC_USER, {"exec": login_command(login)}
    _write(path, kubeconfig_document(name, cluster, user, credentials, space=account or ""))
    return Access(
        cluster=spec.name,
        path=str(path),
        user=user,
        account=account,
        ends=x509.load_pem_x509_certificate(certificate).not_valid_after_utc
        if certificate
        else None,
        server=server,
        reachable=_answers(server),
        tunnel=line,
        issuer="" if login is None else login.issuer,
    )


def login_command(oidc: Oidc) -> dict[str, Any]:
    """Return how kubectl gets a token: by its plugin kubelogin, which opens a browser (pure).

    Arguments as in int128/kubelogin, docs/usage.md (read 2026-11).
    """
    arguments = [
        "oidc-login",
        "get-token",
        f"--oidc-issuer-url={oidc.issuer}",
        f"--oidc-client-id={oidc.client_id}",
        *(f"--oidc-extra-scope={scope}" for scope in oidc.scopes),
    ]
    if oidc.ca is not None:
        authority = base64.b64encode(oidc.ca.encode()).decode()
        arguments.append(f"--certificate-authority-data={authority}")
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "kubectl",
        "args": arguments,
        "interactiveMode": "IfAvailable",
        "installHint": "kubectl krew install oidc-login, or "
        "github.com/int128/kubelogin/releases as kubectl-oidc_login on the PATH",
    }


def _login(spec: ClusterSpec, scheduler: KubernetesScheduler) -> Oidc:
    if scheduler.oidc is None:
        raise _refused(
            f"{spec.name} takes no tokens of an identity provider",
            hint="add scheduler: {oidc: {issuer: https://..., client_id: ...}}, then gcluster up",
        )
    return scheduler.oidc


def _reached(server: str, hosts: ClusterInventory) -> dict[str, str]:
    """Return the API's address from outside: a control plane's name only resolves on nodes."""
    name_there, port = urlsplit(server).hostname or "", urlsplit(server).port or 443
    address = next((h.address for h in hosts.hosts if h.name == name_there), "") or name_there
    found = {"server": f"https://{f'[{address}]' if ':' in address else address}:{port}"}
    return found if address == name_there else found | {"tls-server-name": name_there}


def _forwarding(session: SshSession, hosts: ClusterInventory, forward: str) -> str:
    """Return the ssh line of a tunnel through a login node, else a control plane."""
    argv = session.argv((*hosts.with_role("login"), *hosts.with_role("controller"))[0])
    return shlex.join([argv[0], "-N", "-L", forward, *(w for w in argv[1:] if w != "-t")])


def sign(
    kubectl: Kubectl,
    request: bytes,
    *,
    user: str,
    lifetime_s: int,
    sleep: Callable[[float], None] = time.sleep,
) -> bytes:
    """Have the cluster sign a request (PEM) and return the certificate (PEM).

    The request's object is removed whatever comes of it; one that a killed run leaves is removed
    by the cluster itself within a day.

    Raises:
        ApiRefused: the API server or its signer refused.
        ApiSilent: no API server answers.
    """
    label = re.sub(r"[^a-z0-9-]+", "-", user.lower()).strip("-") or "user"
    name = f"gcluster-{label}-{secrets.token_hex(4)}"
    spec = {
        "request": base64.b64encode(request).decode(),
        "signerName": SIGNER,
        "expirationSeconds": lifetime_s,
        "usages": ["client auth"],
    }
    made = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": spec,
    }
    kubectl.text("create", "--filename=-", stdin=msgspec.json.encode(made).decode())
    try:
        kubectl.text("certificate", "approve", name)
        for _ in range(_SIGNED_WITHIN_S):
            status = kubectl.get("csr", name).get("status", {})
            if signed := status.get("certificate"):
                return base64.b64decode(signed)
            for condition in status.get("conditions", ()):
                if condition["type"] in {"Denied", "Failed"}:
                    raise ApiRefused(str(condition.get("message") or condition["type"]))
            sleep(1)
        raise ApiRefused(f"kube-controller-manager signed nothing within {_SIGNED_WITHIN_S} s")
    finally:
        kubectl.run("delete", "csr", name, "--ignore-not-found", "--wait=false")


def _group(scheduler: KubernetesScheduler, account: str | None, user: str | None) -> str | None:
    """Return the group that the certificate names; None for a member, whose name has the rights.

    So a member who leaves the account loses the rights at the next `up`, certificate or not. With
    no user, whom the identity provider names, the account must exist.
    """
    if user is not None and not _USER.fullmatch(user):
        raise _refused(f'"{user}" is no user name', hint="--user NAME: letters, digits, . _ @ -")
    if account is None:
        return ADMIN_GROUP
    if account not in scheduler.accounts:
        known = ", ".join(sorted(scheduler.accounts)) or "none"
        raise _refused(f'there is no account "{account}"', hint=f"accounts of the spec: {known}")
    members = scheduler.accounts[account].users
    if members and user is not None and user not in members:
        raise _refused(
            f'"{user}" is no member of account "{account}"',
            hint=f"--user NAME: one of {', '.join(sorted(members))}, or add them to its users",
        )
    return None if members else f"{GROUP_PREFIX}{account}"


def _request(user: str, group: str | None) -> tuple[bytes, bytes]:
    """Return a new private key (PKCS 8) and a request that names user and group, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group is not None:
        names.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    subject = x509.Name(names)
    request = x509.CertificateSigningRequestBuilder().subject_name(subject)
    return (
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        request.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
    )


def _managed(  # noqa: PLR0917  # what `grant` has found out
    spec: ClusterSpec,
    folder: Path,
    account: str | None,
    path: Path,
    user: str,
    login: Oidc | None,
) -> Access:
    """Return the kubeconfig of a cloud's control plane, whose user is this person's cloud login.

    With `login` it is the one at the identity provider.
    """
    if account is not None and login is None:
        raise _refused(
            f"people reach {spec.name} by their own login to the cloud",
            hint=f"under EKS give them an access entry with the group {GROUP_PREFIX}{account}; "
            f"under GKE and AKS bind their group: kubectl create rolebinding people --role={ROLE} "
            f"--group=GROUP --namespace={account}; without --as you get your own",
        )
    try:
        text = (folder / FILE).read_bytes()
    except FileNotFoundError:
        raise _refused(
            f"this machine has not seen the control plane of {spec.name} yet",
            hint=f"gcluster status {spec.name}",
        ) from None
    config = msgspec.json.decode(text)
    cluster = config["clusters"][0]["cluster"]
    if login is not None:
        user, credentials = _OIDC_USER, {"exec": login_command(login)}
        config = kubeconfig_document(
            f"{spec.name}-{account or 'oidc'}", cluster, user, credentials, space=account or ""
        )
    _write(path, config)
    server = cluster["server"]
    return Access(
        cluster=spec.name,
        path=str(path),
        user=user,
        account=account,
        ends=None,
        server=server,
        reachable=_answers(server),
        issuer="" if login is None else login.issuer,
    )


def _write(path: Path, config: dict[str, Any]) -> None:
    try:
        atomic.write(path, msgspec.json.format(msgspec.json.encode(config)) + b"\n")  # JSON is YAML
    except OSError as error:
        raise _refused(f"{path} can't be written: {error.strerror}") from error


def _answers(server: str) -> bool:
    at = urlsplit(server)
    try:
        with socket.create_connection(
            (at.hostname or "", at.port or 443), timeout=_CONNECTS_WITHIN_S
        ):
            return True
    except OSError:
        return False


def _refused(summary: str, hint: str = "") -> LifecycleError:
    return failure("GC1073", summary, hint=hint, exit_code=Exit.USAGE if hint else Exit.FAILED)
