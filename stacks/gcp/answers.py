"""What Google would answer a program that is only recorded: placeholders, no question is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..pulumi.recorded import Values

if TYPE_CHECKING:
    from ..pulumi.monitor import Answer, Json

_SUBNETS = 16
"""More than any machine has NICs: which there really are is told by Google."""


def answers(region: str) -> dict[str, Answer]:
    """Return the answers for a site's region."""

    def network(arguments: Values) -> dict[str, Json]:
        project, name = arguments.get("project"), arguments.get("name")
        subnets = f"projects/{project}/regions/{region}/subnetworks/${{{name}.subnet"
        return {
            "selfLink": f"projects/{project}/global/networks/{name}",
            "subnetworksSelfLinks": [f"{subnets}-{number:02d}}}" for number in range(_SUBNETS)],
        }

    return {
        "gcp:compute/getNetwork:getNetwork": network,
        "gcp:organizations/getProject:getProject": _project,
    }


def _project(arguments: Values) -> dict[str, Json]:
    project = arguments.get("projectId")
    return {
        "projectId": str(project),
        "billingAccount": f"${{{project}.billing-account}}",
        "number": f"${{{project}.number}}",
    }
