"""Who encrypts what must be stored."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from gcluster.schemas.spec.noun import Noun


class AgeSecrets(Noun, frozen=True, tag_field="provider", tag="age"):
    """age X25519 identity, by reference."""

    key: Annotated[
        str,
        Meta(
            pattern=r"^(env|file):[^\r\n]+$(?!\n)",
            description="Where the identity (AGE-SECRET-KEY-1...) is: env:NAME or file:PATH.",
            examples=["env:GCLUSTER_AGE_KEY", "file:~/.config/gcluster/age.key"],
        ),
    ]
