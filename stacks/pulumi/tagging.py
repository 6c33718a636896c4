"""Puts a site's tags on every resource of a program that takes them, in one place."""

from __future__ import annotations

import typing
from collections.abc import Mapping

import pulumi
from pulumi.runtime import register_stack_transformation

from .names import Labels


def tag_everything(labels: Labels) -> None:
    """Tag all resources that the running program makes from here on; call it first.

    A resource keeps its own tags too; the site's win. It is done in the program and not by the
    engine, so a recording shows it.
    """

    def tag(
        args: pulumi.ResourceTransformationArgs,
    ) -> pulumi.ResourceTransformationResult | None:
        argument = tag_argument(type(args.resource))
        if not argument:
            return None
        props = dict(args.props)
        theirs = labels.gcp() if argument.endswith("labels") else labels.tags()
        if tag_list(type(args.resource)):
            props[argument] = _listed(props.get(argument), theirs)
        else:
            props[argument] = _merged(props.get(argument), theirs)
        return pulumi.ResourceTransformationResult(props=props, opts=args.opts)

    register_stack_transformation(tag)


def _merged(
    own: pulumi.Input[Mapping[str, str]] | None, theirs: Mapping[str, str]
) -> pulumi.Input[Mapping[str, str]]:
    if own is None or isinstance(own, dict):
        return {**(own or {}), **theirs}
    return pulumi.Output.from_input(own).apply(lambda known: {**known, **theirs})


def _listed(own: object, theirs: Mapping[str, str]) -> list[object]:
    """Return the form of Auto Scaling groups, which hand the tags on to their machines."""
    ours = ({"key": k, "value": v, "propagate_at_launch": True} for k, v in theirs.items())
    return [*(own if isinstance(own, list | tuple) else ()), *ours]


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
