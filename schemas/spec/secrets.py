"""Who encrypts what must be stored."""

from typing import Annotated, ClassVar, TypeAlias

from msgspec import Meta

from gcluster.schemas.spec.noun import Noun, updates
from gcluster.schemas.spec.words import SECRET_PATTERN, Identifier


class AgeSecrets(Noun, frozen=True, tag_field="provider", tag="age"):
    """age X25519 identity, by reference."""

    UPDATES: ClassVar = updates(in_place="key")

    key: Annotated[
        str,
        Meta(
            pattern=SECRET_PATTERN,
            description="Where the identity (AGE-SECRET-KEY-1...) is, by reference.",
            examples=["env:GCLUSTER_AGE_KEY", "file:~/.config/gcluster/age.key"],
        ),
    ]


class KmsSecrets(Noun, frozen=True, tag_field="provider", tag="kms"):
    """A key of a cloud's key management service."""

    UPDATES: ClassVar = updates(in_place="key")

    key: Annotated[
        Identifier,
        Meta(
            description="The key: an ARN (AWS), projects/.../cryptoKeys/... (GCP), or a key URL "
            "(Azure).",
            examples=["arn:aws:kms:us-east-1:111122223333:key/0abc"],
        ),
    ]


class SopsSecrets(Noun, frozen=True, tag_field="provider", tag="sops"):
    """A file that sops encrypts."""

    UPDATES: ClassVar = updates(in_place="file")

    file: Annotated[
        str, Meta(min_length=1, description="The file, beside the spec.", examples=["secrets.yaml"])
    ]


Secrets: TypeAlias = AgeSecrets | KmsSecrets | SopsSecrets
"""Any secrets provider; `provider:` chooses the branch."""
