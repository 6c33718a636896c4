"""What every type of the spec is made of: a frozen, strict struct, and the words it uses.

The files of this folder and the catalog's types don't postpone their annotations: msgspec would
compile each from its text when the first spec is read, 20 ms of every `gcluster validate`.
"""

from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import Meta

UpdatePolicy: TypeAlias = Literal["none", "in-place", "rolling", "replace", "shrink", "destroy"]
"""What changing a field does to what runs. none: nothing on nodes. in-place: files and services
under running jobs. rolling: nodes are drained first, a few at a time. replace: machines are made
again. shrink: nothing while a number grows; what is too many is destroyed when it falls. destroy:
what it names goes, with its data. Of a map: adding an entry is "none", the policy is of taking one
away."""


class SpecModel(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Base of all spec types."""

    UPDATES: ClassVar[dict[str, UpdatePolicy]] = {}
    """Field -> its policy; each class says it of all fields of its own, and a test holds that."""


def updates(
    *,
    none: str = "",
    in_place: str = "",
    rolling: str = "",
    replace: str = "",
    shrink: str = "",
    destroy: str = "",
) -> dict[str, UpdatePolicy]:
    """Return field -> policy from the names of the fields of each policy, with spaces between."""
    groups: dict[UpdatePolicy, str] = {
        "none": none,
        "in-place": in_place,
        "rolling": rolling,
        "replace": replace,
        "shrink": shrink,
        "destroy": destroy,
    }
    return {name: policy for policy, names in groups.items() for name in names.split()}


NAME_PATTERN = r"^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$(?!\n)"
NAME_RULE = "Lower-case letters, digits and hyphens; starts with a letter; at most 32."

Name: TypeAlias = Annotated[str, msgspec.Meta(pattern=NAME_PATTERN, description=NAME_RULE)]
"""A cluster, site or storage: also a DNS label, a container name and a Slurm name."""

_POOL_PATTERN = r"^[A-Za-z]([A-Za-z0-9_-]{0,30}[A-Za-z0-9])?$(?!\n)"
_POOL_RULE = "Letters, digits, hyphens and underscores; starts with a letter; at most 32."

PoolName: TypeAlias = Annotated[str, msgspec.Meta(pattern=_POOL_PATTERN, description=_POOL_RULE)]
"""A pool or partition, as Slurm takes it. Machines are called after it in lower case, with hyphens
for underscores; under Kubernetes it is written so (GC554)."""

_ACCOUNT_PATTERN = r"^[a-z]([a-z0-9_.-]{0,30}[a-z0-9])?$(?!\n)"
_ACCOUNT_RULE = (
    "Lower-case letters, digits, hyphens, underscores and dots; starts with a letter; at most 32. "
    "Slurm's database keeps accounts and QOS in lower case, whatever case a job writes."
)

AccountName: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=_ACCOUNT_PATTERN, description=_ACCOUNT_RULE)
]
"""An account or a QOS (sacctmgr(1): "The contents of Slurm's database are maintained in lower
case"); a namespace or a priority class under Kubernetes (GC554)."""

NAME_RULES = {
    NAME_PATTERN: NAME_RULE,
    _POOL_PATTERN: _POOL_RULE,
    _ACCOUNT_PATTERN: _ACCOUNT_RULE,
}
"""Pattern of a name -> what it says in words."""


_WORD = r"^[^-\s]\S*$(?!\n)"

LoginUser: TypeAlias = Annotated[str, Meta(pattern=_WORD, examples=["ops"])]
"""A login name as SSH takes it."""

Bastion: TypeAlias = Annotated[
    str, Meta(pattern=_WORD, examples=["jump.example.edu", "ops@jump.example.edu:2222"])
]
"""[user@]host[:port] as in ssh -J."""

FilePath: TypeAlias = Annotated[
    str, Meta(pattern=r"^[^-\r\n][^\r\n]*$(?!\n)", examples=["~/.ssh/id_ed25519"])
]
"""A path on the machine that runs gcluster; ~ is the home folder there."""

HostKey: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9@.-]+ [A-Za-z0-9+/=.]+( [^\r\n]*)?$(?!\n)",
        examples=["ssh-ed25519 AAAA..."],
    ),
]
"""A public host key: its type and its base64 text, as in known_hosts without the host."""

PublicKey: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^(ssh-|ecdsa-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\r\n]*)?$(?!\n)",
        examples=["ssh-ed25519 AAAA... ca@example.edu"],
    ),
]
"""A public SSH key in one line: its type, its base64 text, a comment."""

MountPoint: TypeAlias = Annotated[
    str, Meta(pattern=r"^/[^\s:,]+$(?!\n)", examples=["/lustre", "/home"])
]
"""An absolute path on the nodes."""

Identifier: TypeAlias = Annotated[str, Meta(pattern=_WORD)]
"""An id or resource name as the cloud writes it: vpc-0abc, projects/p/global/networks/n, an ARN."""

Cidr: TypeAlias = Annotated[
    str, Meta(pattern=r"^[0-9a-fA-F.:]+/[0-9]{1,3}$(?!\n)", examples=["10.40.0.0/16"])
]
"""A network: its first address and its prefix length."""

Url: TypeAlias = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9+.-]*://[^\s]+$(?!\n)")]
"""A URL with its scheme."""

Version: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^(auto|[0-9]+([.+~:-][A-Za-z0-9]+)*)$(?!\n)",
        examples=["auto", "580", "580.126.16"],
    ),
]
"""A version, a prefix of one ("580" is any 580.x), or auto: what the software lock says."""

OwnVersion: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^(auto|preinstalled|[0-9]+([.+~:-][A-Za-z0-9]+)*)$(?!\n)",
        examples=["auto", "preinstalled", "580", "580.126.16"],
    ),
]
"""A version; or preinstalled: the hosts or the image bring it, and nothing of it is installed."""

SlurmVersion: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^(auto|distribution|[0-9]+([.+~:-][A-Za-z0-9]+)*)$(?!\n)",
        examples=["auto", "25.11", "25.11.8", "distribution"],
    ),
]
"""As `Version`, or distribution: the distribution's own package, whatever version that is."""

Tag: TypeAlias = Annotated[str, Meta(pattern=r"^[^\r\n]{0,255}$(?!\n)")]
"""The value of a tag or label."""

REFERENCE_KINDS = "env|file|sops|ansible-vault|aws-secret|gcp-secret|azure-secret"
SECRET_PATTERN = rf"^({REFERENCE_KINDS}):[^\r\n]+$(?!\n)"  # a pattern

Secret: TypeAlias = Annotated[
    str,
    Meta(
        pattern=SECRET_PATTERN,
        examples=[
            "env:LDAP_PASSWORD",
            "file:~/.config/gcluster/ldap",
            "sops:secrets.yaml#ldap.password",
            "ansible-vault:secrets.yml#ldap_password",
        ],
    ),
]
"""A secret by reference, never the secret itself: env:NAME, file:PATH, sops:FILE#KEY,
ansible-vault:FILE#KEY, or aws-secret:, gcp-secret:, azure-secret: and the name there."""

Fingerprint: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^([0-9A-F]{40}|[0-9A-F]{64})$(?!\n)",
        examples=["EB693B3035CD5710E231E123A4B469963BF863CC"],
    ),
]
"""Fingerprint of an OpenPGP key: 40 (version 4) or 64 hexadecimal digits, upper case, no spaces."""

ImageReference: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]*)*"
        r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$(?!\n)",
        max_length=512,
    ),
]
"""A container image: [registry[:port]/]path[:tag][@digest], as registries take it."""
