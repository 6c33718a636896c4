"""Kubernetes' own settings: control plane, networks, GPUs, and who its people and pods are."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from msgspec import Meta, field

from ..model import AccountName, Cidr, Name, PoolName, Secret, SpecModel, updates
from ..units import Duration
from .work import SUSPEND_AFTER_S, Account, Maintenance, Partition, Qos

ClaimName: TypeAlias = Annotated[
    str, Meta(pattern=r"^[!-~]{1,63}$(?!\n)", examples=["preferred_username"])
]
"""Name of a claim of a JSON Web Token; of 63 characters at most, as EKS has it."""
OidcGroup: TypeAlias = Annotated[
    str, Meta(pattern=r"^[^\s](?:[^\r\n\t]{0,251}[^\s])?$(?!\n)", examples=["/nlp"])
]
"""A group as the identity provider's tokens have it: a name, a path or an id."""


OIDC_PREFIX = "oidc:"
"""What names of users and groups of an identity provider begin with in the API."""


class VirtualAddress(SpecModel, frozen=True):
    """One address for several control planes on bare metal."""

    UPDATES: ClassVar = updates(replace="address by")

    address: Annotated[str, Meta(min_length=1)]
    """A free address of their network."""
    by: Literal["kube-vip", "keepalived"] = "kube-vip"
    """Who moves it."""


class KubernetesGpu(SpecModel, frozen=True):
    """How pods get GPUs."""

    UPDATES: ClassVar = updates(in_place="time_slices resource_claims", rolling="driver mig")

    driver: Literal["host", "container"] = "host"
    """Who brings the driver."""
    mig: Annotated[str | None, Meta(examples=["all-1g.10gb"])] = None
    """MIG profile of all GPUs; default: off."""
    time_slices: Annotated[int, Meta(ge=1)] = 1
    """Pods that share one GPU in turns."""
    resource_claims: bool = False
    """Dynamic resource allocation instead of the device plugin."""


class CloudIdentity(SpecModel, frozen=True):
    """Who an account's pods are to the cloud that runs the control plane; no key is anywhere."""

    UPDATES: ClassVar = updates(in_place="name client_id")

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=512,
            examples=["arn:aws:iam::123456789012:role/nlp", "nlp@acme.iam.gserviceaccount.com"],
        ),
    ]
    """An identity that exists: a role's ARN (EKS), the e-mail of a service account (GKE), the
    resource id of a managed identity (AKS)."""
    client_id: (
        Annotated[
            str,
            Meta(
                pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$(?!\n)",
                examples=["00000000-0000-0000-0000-000000000000"],
            ),
        ]
        | None
    ) = None
    """Client id of the managed identity (AKS)."""


class RegistryLogin(SpecModel, frozen=True):
    """How nodes pull accounts' images from a registry that wants a login."""

    UPDATES: ClassVar = updates(in_place="server username password accounts")

    server: Annotated[
        str,
        Meta(
            pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$(?!\n)",
            max_length=253,
            examples=["nvcr.io"],
        ),
    ]
    """Host of the registry, and its port where that isn't 443."""
    username: Annotated[str, Meta(min_length=1, examples=["$oauthtoken"])]
    """Who logs in; NGC's API keys log in as $oauthtoken."""
    password: Secret
    """Of that user, or a token."""
    accounts: list[AccountName] = field(default_factory=list)
    """Accounts whose pods pull with it, and whose members can read it; empty: all."""


class Oidc(SpecModel, frozen=True):
    """Login of people by an identity provider with OpenID Connect, in addition to certificates.

    Users and groups of its tokens are known to the API by the prefix `oidc:`, so no token names a
    user of Kubernetes' own.
    """

    UPDATES: ClassVar = updates(
        in_place="issuer client_id username_claim groups_claim groups admin_groups "
        "required_claims scopes ca",
    )

    issuer: Annotated[
        str,
        Meta(
            pattern=r"^https://[^\s?#@]+$(?!\n)",
            max_length=2048,
            examples=["https://login.example.edu/realms/hpc"],
        ),
    ]
    """URL of the provider, as its tokens name it (`iss`)."""
    client_id: Annotated[str, Meta(pattern=r"^[!-~]+$(?!\n)", max_length=255)]
    """Client that the tokens are for (`aud`); a public one, with PKCE: nothing secret is kept."""
    username_claim: ClaimName = "sub"
    """Claim with the name that `accounts` lists under `users`."""
    groups_claim: ClaimName = "groups"
    """Claim with a person's groups."""
    groups: dict[AccountName, Annotated[list[OidcGroup], Meta(min_length=1)]] = field(
        default_factory=dict
    )
    """Account -> groups of the provider whose people have the account's rights, as its `users`
    have."""
    admin_groups: list[OidcGroup] = field(default_factory=list)
    """Groups whose people administer the cluster."""
    required_claims: dict[
        ClaimName, Annotated[str, Meta(pattern=r"^[^\r\n]+$(?!\n)", max_length=253)]
    ] = field(default_factory=dict)
    """Claims that a token must have, with their values."""
    scopes: list[Annotated[str, Meta(pattern=r"^[!-~]+$(?!\n)", max_length=255)]] = field(
        default_factory=list
    )
    """Scopes that are requested besides openid, where a provider gives groups or names by one."""
    ca: Annotated[str, Meta(pattern=r"^\s*-----BEGIN CERTIFICATE-----")] | None = None
    """CA certificates (PEM) that vouch for the provider; default: those of the control planes'
    distribution."""


class KubernetesScheduler(SpecModel, frozen=True, tag_field="type", tag="kubernetes"):
    """Kubernetes by kubeadm, or the cloud's own control plane."""

    UPDATES: ClassVar = updates(
        in_place="partitions qos accounts kueue addons pod_security identities registries "
        "maintenance oidc suspend_after",
        rolling="gpu",
        replace="cni pod_cidr service_cidr virtual_address control_plane",
    )

    partitions: dict[PoolName, Partition] = field(default_factory=dict)
    """Queues; default: one, "main", with every compute pool."""
    qos: dict[AccountName, Qos] = field(default_factory=dict)
    """Priority classes."""
    accounts: dict[AccountName, Account] = field(default_factory=dict)
    """Namespaces with their quotas."""
    cni: Literal["auto", "cilium", "calico", "routed"] = "auto"
    """Pod network; auto: routed on local sites, cilium elsewhere."""
    pod_cidr: Cidr = "10.244.0.0/16"
    """Network of the pods."""
    service_cidr: Cidr = "10.96.0.0/12"
    """Network of the services."""
    virtual_address: VirtualAddress | None = None
    """Of several control planes; clouds use their load balancer."""
    control_plane: Literal["self", "eks", "gke", "aks"] = "self"
    """Who runs the control plane: controller pools, or the cloud."""
    gpu: KubernetesGpu = KubernetesGpu()
    """How pods get GPUs."""
    kueue: bool = True
    """Queue jobs by Kueue."""
    pod_security: Literal["restricted", "baseline"] = "restricted"
    """Pod Security Standard that pods of accounts are held to; baseline lets containers be root."""
    addons: list[Name] = field(default_factory=list)
    """Add-ons of the catalog in addition to the built-in ones."""
    identities: dict[AccountName, CloudIdentity] = field(default_factory=dict)
    """Account -> identity of the cloud that its pods have (EKS, GKE, AKS)."""
    registries: dict[Name, RegistryLogin] = field(default_factory=dict)
    """Registries of images that want a login; pods of accounts need not name a secret."""
    maintenance: dict[Name, Maintenance] = field(default_factory=dict)
    """The window in which the cloud renews control plane and nodes' images (GKE, AKS)."""
    oidc: Oidc | None = None
    """Login by an identity provider (`self`, EKS)."""
    suspend_after: Duration | None = None
    """Idle elastic nodes are given back after this (`self`); default: 10m."""

    @property
    def suspend_s(self) -> float:
        """Seconds after which an idle elastic node is given back."""
        return SUSPEND_AFTER_S if self.suspend_after is None else self.suspend_after.value
