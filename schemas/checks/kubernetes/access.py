"""Who accounts' pods are outside of the cluster: to its cloud, and to registries of images."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...diagnostics import PathTuple
from ...spec import AzureSite
from ..context import CheckContext
from ..registry import Finding, check


@check("GC744", summary="A registry's login is for no account, or twice for one registry.")
def registry_login(context: CheckContext) -> Iterator[Finding]:
    """`registries` names logins of registries; each is for accounts of the spec.

    One pod can log in to a registry as one user: a second login of the same registry is for other
    accounts.
    """
    kubernetes = context.kubernetes
    if kubernetes is None:
        return
    seen: dict[tuple[str, str], str] = {}
    for name, one in kubernetes.registries.items():
        path: PathTuple = ("scheduler", "registries", name)
        for index, account in enumerate(one.accounts):
            if account not in kubernetes.accounts:
                yield Finding(
                    summary=f'"{account}" is no account',
                    path=(*path, "accounts", index),
                    hint=f"accounts are: {', '.join(kubernetes.accounts)}"
                    if kubernetes.accounts
                    else "remove accounts: the login is for everyone",
                    relies_on=((*path, "accounts", index), ("scheduler", "accounts")),
                )
        for account in one.accounts or [*kubernetes.accounts, ""]:
            other = seen.setdefault((one.server, account), name)
            if other != name:
                yield Finding(
                    summary=f'"{other}" logs in to {one.server} already'
                    + (f" for account {account}" if account else ""),
                    path=(*path, "server"),
                    hint="keep one of them, or name other accounts",
                    relies_on=((*path, "server"), (*path, "accounts")),
                )
                break


_PLANE: PathTuple = ("scheduler", "control_plane")
_FORMS = {
    "eks": (
        r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+",
        "the ARN of a role, arn:aws:iam::123456789012:role/nlp",
    ),
    "gke": (
        r"[a-z][a-z0-9-]{4,28}[a-z0-9]@[a-z][a-z0-9.:-]+\.iam\.gserviceaccount\.com",
        "the e-mail of a service account, nlp@acme.iam.gserviceaccount.com",
    ),
    "aks": (
        (
            r"/subscriptions/[0-9a-fA-F-]{36}/resource[gG]roups/[^/]+/providers/"
            r"Microsoft\.ManagedIdentity/userAssignedIdentities/[^/]+"
        ),
        "the resource id of a managed identity, as az identity show --query id prints it",
    ),
}
"""Control plane -> what its identities look like, and how to say so."""


@check("GC743", summary="An account's identity in the cloud can't be given to its pods.")
def account_identity(context: CheckContext) -> Iterator[Finding]:
    """`identities` names who accounts' pods are to the cloud that runs the control plane.

    Under EKS a role that trusts pods.eks.amazonaws.com, under GKE a service account, under AKS a
    managed identity of the site's subscription with its client id. Nodes of control planes of
    one's own have no such identities: there pods get what their own secrets say.
    """
    kubernetes = context.kubernetes
    if kubernetes is None:
        return
    plane = kubernetes.control_plane
    for account, one in kubernetes.identities.items():
        path: PathTuple = ("scheduler", "identities", account)
        if account not in kubernetes.accounts:
            yield Finding(
                summary=f'"{account}" is no account',
                path=path,
                at_key=True,
                hint=f"accounts are: {', '.join(kubernetes.accounts)}"
                if kubernetes.accounts
                else "name it under scheduler.accounts",
                relies_on=(path, ("scheduler", "accounts")),
            )
        elif plane not in _FORMS:
            yield Finding(
                summary="no cloud runs the control plane, so pods have no identity of a cloud",
                path=path,
                at_key=True,
                hint="remove it: members keep credentials in secrets of their account",
                relies_on=(path, _PLANE),
            )
        elif not re.fullmatch(_FORMS[plane][0], one.name):
            yield Finding(
                summary=f'"{one.name[:80]}" is no identity that {plane} gives to pods',
                path=(*path, "name"),
                hint=f"write {_FORMS[plane][1]}",
                relies_on=((*path, "name"), _PLANE),
            )
        elif (one.client_id is None) == (plane == "aks"):
            yield Finding(
                summary="pods of AKS find their identity by its client id"
                if plane == "aks"
                else f"identities of {plane} have no client id",
                path=path,
                at_key=True,
                hint="add client_id: az identity show --query clientId prints it"
                if plane == "aks"
                else "remove client_id",
                relies_on=(path, _PLANE),
            )
        elif plane == "aks":
            yield from _of_another_subscription(context, path, one.name)


def _of_another_subscription(
    context: CheckContext, path: PathTuple, identity: str
) -> Iterator[Finding]:
    for name in sorted({pool.site for pool in context.pools.values()}):
        site = context.sites.get(name)
        mine = identity.split("/")[2].lower()
        if isinstance(site, AzureSite) and site.subscription.lower() != mine:
            yield Finding(
                summary=f'the identity is of another subscription than site "{name}"',
                path=(*path, "name"),
                hint="make one in the site's subscription: its trust in the cluster is made there",
                relies_on=((*path, "name"), ("sites", name, "subscription")),
            )


@check("GC749", summary="People can't log in by the identity provider as the spec says.")
def oidc_login(context: CheckContext) -> Iterator[Finding]:
    """`oidc` is for control planes of one's own and for EKS, whose API server takes such tokens.

    People reach GKE by Workforce Identity Federation, which Google recommends over its Identity
    Service, with which pools don't grow (docs.cloud.google.com/kubernetes-engine/docs/how-to/oidc;
    read 2026-11), and AKS by Entra ID. EKS queries the provider over the internet, and trusts
    public certificates alone (docs.aws.amazon.com/eks/latest/userguide/
    authenticate-oidc-identity-provider.html; read 2026-11). An API server does not start with a
    `ca` that holds no certificate.
    """
    kubernetes = context.kubernetes
    if kubernetes is None or kubernetes.oidc is None:
        return
    path: PathTuple = ("scheduler", "oidc")
    plane = kubernetes.control_plane
    if plane in _OWN_LOGIN:
        yield Finding(
            summary=f"{plane} takes no tokens of this identity provider",
            path=path,
            at_key=True,
            hint=f"remove oidc: people log in by {_OWN_LOGIN[plane]}, and an account's group there "
            "gets its rights by kubectl create rolebinding people --role=account-member "
            "--group=GROUP --namespace=ACCOUNT",
            relies_on=(path, _PLANE),
        )
        return
    for account in kubernetes.oidc.groups:
        if account not in kubernetes.accounts:
            yield Finding(
                summary=f'"{account}" is no account',
                path=(*path, "groups", account),
                at_key=True,
                hint=f"accounts are: {', '.join(kubernetes.accounts)}"
                if kubernetes.accounts
                else "name it under scheduler.accounts",
                relies_on=((*path, "groups", account), ("scheduler", "accounts")),
            )
    if kubernetes.oidc.ca is None:
        return
    if plane == "eks":
        yield Finding(
            summary="eks trusts an identity provider by public certificates alone",
            path=(*path, "ca"),
            hint="remove ca, and give the provider a certificate of a public authority",
            relies_on=((*path, "ca"), _PLANE),
        )
    elif not _certificates(kubernetes.oidc.ca):
        yield Finding(
            summary="ca holds no certificate that can be read",
            path=(*path, "ca"),
            hint="paste the PEM file whole, from -----BEGIN CERTIFICATE----- to the last -----END",
            relies_on=((*path, "ca"),),
        )


_OWN_LOGIN = {"gke": "Google (Workforce Identity Federation)", "aks": "Entra ID"}
"""Control plane -> how people log in there instead."""


def _certificates(text: str) -> int:
    """Return how many certificates a text (PEM) has; 0 where one of them can't be read."""
    from cryptography import x509  # noqa: PLC0415  # 40 ms that only a spec with a CA pays

    try:
        return len(x509.load_pem_x509_certificates(text.encode()))
    except ValueError:
        return 0
