"""Text of a fixed form: words of a command line, paths, addresses, URLs, versions, labels.

ssh reads a word that starts with "-" as an option, so such a user or jump host is refused here.
"""

from typing import Annotated, TypeAlias

from msgspec import Meta

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

Tag: TypeAlias = Annotated[str, Meta(pattern=r"^[^\r\n]{0,255}$(?!\n)")]
"""The value of a tag or label."""

_PLACES = "env|file|sops|ansible-vault|aws-secret|gcp-secret|azure-secret"
SECRET_PATTERN = rf"^({_PLACES}):[^\r\n]+$(?!\n)"  # a pattern

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
