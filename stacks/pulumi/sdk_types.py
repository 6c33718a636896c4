"""What a resource class of a Pulumi SDK says about itself: its outputs, and where it takes tags."""

from __future__ import annotations

import typing

import pulumi

_TAG_ARGUMENTS = ("labels", "tags", "freeform_tags", "resource_labels", "user_labels")
"""In order: where GCP has both, `tags` are its network tags."""
_TEXT = (pulumi.Output[str], pulumi.Output[str | None])


_known_outputs: dict[type[pulumi.Resource], tuple[str, ...]] = {}
_known_arguments: dict[type[pulumi.Resource], str] = {}


def text_outputs(resource: type[pulumi.Resource]) -> tuple[str, ...]:
    """Return the names of properties that are text once the resource exists, as providers spell."""
    if resource not in _known_outputs:
        _known_outputs[resource] = _find_text_outputs(resource)
    return _known_outputs[resource]


def tag_argument(resource: type[pulumi.Resource]) -> str:
    """Return the argument that takes a map of tags (or a list of them), "" where there is none.

    Read from the signature that the SDK declares for keyword arguments.
    """
    if resource not in _known_arguments:
        _known_arguments[resource] = _find_tag_argument(resource)
    return _known_arguments[resource]


def tag_list(resource: type[pulumi.Resource]) -> bool:
    """Say whether `tags` is a list of key, value and propagation (AWS Auto Scaling groups)."""
    for overload in typing.get_overloads(resource.__init__):
        declared = str(overload.__annotations__.get("tags", ""))
        if "TagArgs" in declared and "Sequence" in declared:
            return True
    return False


def _find_text_outputs(resource: type[pulumi.Resource]) -> tuple[str, ...]:
    found = []
    for name in dir(resource):
        attribute = getattr(resource, name)
        if not isinstance(attribute, property) or attribute.fget is None:
            continue
        if name not in {"urn", "id"} and attribute.fget.__annotations__.get("return") in _TEXT:
            found.append(camel_case(name))
    return tuple(found)


def _find_tag_argument(resource: type[pulumi.Resource]) -> str:
    accepted: dict[str, object] = {}
    for overload in typing.get_overloads(resource.__init__):
        accepted |= overload.__annotations__
    for name in _TAG_ARGUMENTS:
        if name in accepted and ("Mapping[str" in str(accepted[name]) or tag_list(resource)):
            return name
    return ""


def camel_case(name: str) -> str:
    """Return the spelling of providers: vpc_id -> vpcId."""
    first, *rest = name.strip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)
