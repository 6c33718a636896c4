"""The minimal permissions of a login on a cloud, as the cloud's policy document.

Which permissions each kind of resource needs is data of each cloud (`data/permissions.yaml`); which
kinds a spec has is in its recorded program.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator

import msgspec

from ..provider import provider_error
from .data import read_data

CLOUDS = ("aws", "azure", "gcp")
"""Those whose permissions are known."""


_STATE = ("s3:DeleteObject", "s3:GetObject", "s3:PutObject")
"""What keeping state in S3 takes below its prefix; its keys are listed, too."""
_PASSED_TO = ["ec2.amazonaws.com", "ec2.amazonaws.com.cn", "eks.amazonaws.com"]
"""Services that may get a role: nodes and control planes, and no others."""


class Permissions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is needed on one cloud."""

    always: tuple[str, ...]
    """For gcluster's own queries and actions."""
    resources: dict[str, tuple[str, ...]]
    """Kind of resource ("ec2.Vpc") -> what making, reading, changing and removing it takes."""


def load_permissions(cloud: str) -> Permissions:
    """Return the content of a cloud's file.

    Raises:
        ProviderError: there is no file for that cloud (GC917).
    """
    if cloud not in CLOUDS:
        raise provider_error(
            "GC917",
            f'the permissions that "{cloud}" needs are not known',
            hint=f"known: {', '.join(CLOUDS)}",
        )
    return read_data(cloud, "permissions", Permissions)


def kind_of(token: str) -> str:
    """Return the kind of a recorded type: "aws:ec2/vpc:Vpc" is "ec2.Vpc"."""
    _, module, name = token.split(":")
    return f"{module.partition('/')[0]}.{name}"


def needed(cloud: str, kinds: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the permissions, sorted.

    Args:
        cloud: one of `CLOUDS`.
        kinds: of resources that may be made; None: all.

    Raises:
        ProviderError: as `load_permissions`.
    """
    permissions = load_permissions(cloud)
    wanted = permissions.resources if kinds is None else set(kinds) & permissions.resources.keys()
    found = {p for kind in wanted for p in permissions.resources[kind]}
    return tuple(sorted({*permissions.always, *found}))


def document(
    cloud: str,
    permissions: Iterable[str],
    name: str = "gcluster",
    *,
    state: tuple[str, str] | None = None,
) -> str:
    """Return the document that grants them: an IAM policy (AWS), or a custom role, in JSON.

    Args:
        cloud: one of `CLOUDS`.
        permissions: as the cloud spells them.
        name: of the role.
        state: ARN of the bucket that holds the state, and its prefix; of AWS alone: roles of the
            others name no resource, so theirs are granted at the bucket.
    """
    granted = list(permissions)
    if cloud == "aws":
        body: dict[str, object] = {
            "Version": "2012-10-17",
            "Statement": [*_statements(granted), *(_of_state(*state) if state else ())],
        }
    elif cloud == "gcp":
        body = {"title": name, "stage": "GA", "includedPermissions": granted}
    else:
        body = {
            "Name": name,
            "IsCustom": True,
            "Description": "What gcluster's up and down need.",
            "Actions": granted,
            "NotActions": [],
            "DataActions": [],
            "NotDataActions": [],
            "AssignableScopes": ["/subscriptions/SUBSCRIPTION"],
        }
    return json.dumps(body, indent=2)


def _statements(granted: Iterable[str]) -> Iterator[dict[str, object]]:
    services: dict[str, list[str]] = {}
    for action in granted:
        if action != "iam:PassRole":
            services.setdefault(action.partition(":")[0], []).append(action)
            continue
        yield {
            "Sid": "PassRole", "Effect": "Allow", "Action": [action], "Resource": "*",
            "Condition": {"StringEquals": {"iam:PassedToService": _PASSED_TO}},
        }  # fmt: skip
    for service, actions in services.items():
        yield {"Sid": service.capitalize(), "Effect": "Allow", "Action": actions, "Resource": "*"}


def _of_state(bucket: str, prefix: str) -> Iterator[dict[str, object]]:
    below = f"{bucket}/{prefix}/*" if prefix else f"{bucket}/*"
    yield {"Sid": "State", "Effect": "Allow", "Action": list(_STATE), "Resource": below}
    yield {"Sid": "StateKeys", "Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": bucket}
