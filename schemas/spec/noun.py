"""What every noun of the spec is made of: a frozen, keyword-only, strict struct, and the names.

The files of this folder and the catalog's types don't postpone their annotations: msgspec would
compile each from its text when the first spec is read, 20 ms of every `gcluster validate`.
"""

from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec

UpdatePolicy: TypeAlias = Literal["none", "in-place", "rolling", "replace", "shrink", "destroy"]
"""What changing a field does to what runs. none: nothing on nodes. in-place: files and services
under running jobs. rolling: nodes are drained first, a few at a time. replace: machines are made
anew. shrink: nothing while a number grows; what is too many is destroyed when it falls. destroy:
what it names goes, with its data. Of a map: adding an entry is "none", the policy is of taking one
away."""


class Noun(
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
"""A cluster, site, pool or partition: also a DNS label, a container name and a Slurm name."""
