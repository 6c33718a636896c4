"""One policy and the file that holds them, typed."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, field

from ..spec.model import Name, SpecModel

Expression: TypeAlias = Annotated[str, Meta(min_length=1, max_length=2000)]
"""CEL; its length is one of the things that bound how long it can take."""

Line: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1000)]

Kind: TypeAlias = Literal[
    "cluster", "site", "pool", "storage", "partition", "qos", "account", "user"
]
"""What a policy is evaluated for: once for the cluster, or once for each item of a kind."""


class Policy(SpecModel, frozen=True):
    """One rule: for each item it applies to, when `when` holds, `rule` must hold."""

    name: Name
    """Name of the policy; every message carries it."""
    owner: Annotated[
        Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[^\r\n]*\S[^\r\n]*$(?!\n)")],
        Meta(examples=["platform@example.org"]),
    ]
    """Contact: a mail address or a team; every message carries it."""
    description: Line
    """What the policy requires; shown when there is no message."""
    applies_to: Kind
    """What the rule is evaluated for, one by one."""
    rule: Annotated[Expression, Meta(examples=["pool.public_address == false"])]
    """CEL that is true when the item is allowed."""
    severity: Literal["error", "warning"] = "error"
    """error: plan and up refuse; warning: it is said and work goes on."""
    when: Expression | None = None
    """CEL; items for which it is false are not judged. Default: all are."""
    message: Annotated[
        Line | None, Meta(examples=["{pool.name} may not cost {pool.cost.usd_per_hour} USD/h"])
    ] = None
    """What is said about an item that is not allowed; {...} holds CEL."""
    hint: Line | None = None
    """What to write instead; default: to contact the owner."""
    at: Annotated[
        Annotated[str, Meta(max_length=200, pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$(?!\n)")]
        | None,
        Meta(examples=["market", "network.admin_cidrs"]),
    ] = None
    """Key of the item that the message points at; default: the item."""


class PolicyFile(SpecModel, frozen=True):
    """The rules of an organisation for the specs of a folder."""

    api_version: Literal["gcluster/policies/v1"] = field(name="apiVersion")
    """Version of the policies' format."""
    policies: Annotated[list[Policy], Meta(max_length=200)]
    """The rules; all of them must hold."""
