"""Addresses of Azure: the address of a resource, and the type of the resource at one.

The addresses are those of the invented cloud (tests/pulumi_double/outputs/azure.yaml).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import yaml
from tests.pulumi_double import clouds

Json = dict[str, Any]  # a provider's JSON
SUBSCRIPTION = "00000000-0000-0000-0000-000000000001"
"""The only one."""
_GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{{in_resourceGroupName}}"


@cache
def templates() -> dict[str, str]:
    """Return type -> its address, "{in_X}" for the input X."""
    file = clouds.OUTPUTS / "azure.yaml"
    types = yaml.safe_load(file.read_text(encoding="utf-8"))["types"]
    return {
        token: known["id"].replace("{group}", _GROUP)
        for token, known in types.items()
        if token.startswith("azure-native:")
    }


def named(token: str) -> list[str]:
    """Return the inputs that are part of a type's address."""
    return re.findall(r"\{in_(\w+)\}", templates()[token])


def address(token: str, inputs: Json) -> tuple[str, Json]:
    """Return a resource's address, and the inputs that are not part of it."""
    names = named(token)
    path = templates()[token].format_map({f"in_{name}": inputs[name] for name in names})
    return path, {key: value for key, value in inputs.items() if key not in names}


def resource_at(path: str) -> tuple[str, Json] | None:
    """Return the type of the resource at an address, and the inputs that the address contains."""
    for token, pattern in _patterns():
        found = pattern.fullmatch(path)
        if found:
            return token, found.groupdict()
    return None


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    made = []
    # Fewer inputs first: a link of a zone would be a record of the type virtualNetworkLinks.
    for token, template in sorted(templates().items(), key=lambda item: item[1].count("{in_")):
        parts = re.split(r"(\{in_\w+\})", template)
        pattern = "".join(_part(part) for part in parts)
        made.append((token, re.compile(pattern, re.IGNORECASE)))
    return tuple(made)


def _part(part: str) -> str:
    if not part.startswith("{in_"):
        return re.escape(part)
    name = part[4:-1]
    return f"(?P<{name}>{'.+' if name == 'scope' else '[^/]+'})"
