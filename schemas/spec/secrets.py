"""Who encrypts what must be stored."""

from typing import Annotated, ClassVar, TypeAlias

from msgspec import Meta

from .model import SECRET_PATTERN, SpecModel, updates

AgeRecipient: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^age1[a-z0-9]{58,}$(?!\n)",
        description="Public half of an age identity.",
        examples=["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"],
    ),
]


class AgeSecrets(SpecModel, frozen=True, tag_field="provider", tag="age"):
    """age X25519 identity, by reference."""

    UPDATES: ClassVar = updates(none="key")

    key: Annotated[
        str,
        Meta(
            pattern=SECRET_PATTERN,
            examples=["env:GCLUSTER_AGE_KEY", "file:~/.config/gcluster/age.key"],
        ),
    ]
    """Where the identity (AGE-SECRET-KEY-1...) is, by reference."""


class SopsSecrets(SpecModel, frozen=True, tag_field="provider", tag="sops"):
    """The program sops: for age recipients, or for whom the user's .sops.yaml says."""

    UPDATES: ClassVar = updates(none="file age")

    file: Annotated[Annotated[str, Meta(min_length=1)] | None, Meta(examples=["secrets.yaml"])] = (
        None
    )
    """A path next to the spec, whose rule in .sops.yaml says for whom the data key is encrypted.
    The file needn't exist, and isn't written."""
    age: tuple[AgeRecipient, ...] = ()
    """Age recipients, instead of a rule in .sops.yaml."""


Secrets: TypeAlias = AgeSecrets | SopsSecrets
"""Any secrets provider; `provider:` chooses the branch."""
