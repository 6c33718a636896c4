"""What every noun of the spec is made of: a frozen, keyword-only, strict struct, and the names.

The files of this folder and the catalog's types don't postpone their annotations: msgspec would
compile each from its text when the first spec is read, 20 ms of every `gcluster validate`.
"""

from typing import Annotated, TypeAlias

import msgspec


class Noun(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Base of all spec types."""


NAME_PATTERN = r"^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$(?!\n)"
NAME_RULE = "Lower-case letters, digits and hyphens; starts with a letter; at most 32."

Name: TypeAlias = Annotated[str, msgspec.Meta(pattern=NAME_PATTERN, description=NAME_RULE)]
"""A cluster, site, pool or partition: also a DNS label, a container name and a Slurm name."""
