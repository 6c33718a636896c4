"""Puts a site's tags on every resource of a program that takes them, in one place."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
from pulumi.runtime import register_stack_transformation

from .labels import Labels
from .sdk_types import tag_argument, tag_list


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
