"""The base of our Pulumi components: typed arguments, parent passed on, outputs, tags, waiting.

A provider that times out leaves a resource that the cloud continues to create, that is billed, and
that the next update creates once more. Which kinds are slow is data of each cloud
(`data/timeouts.yaml`), each with its reason.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from functools import cache
from typing import ClassVar, Generic, TypeVar

import msgspec
import pulumi
from pulumi.runtime import register_stack_transformation

from .data import read_data
from .names import Labels, Names

A = TypeVar("A", bound="Args")


class Args(msgspec.Struct, frozen=True, kw_only=True):
    """Base of a component's arguments: named, frozen; values may be outputs of others.

    A subclass must repeat `frozen=True, kw_only=True`: msgspec and mypy don't inherit all of it.
    """


class Component(pulumi.ComponentResource, Generic[A]):
    """A component with arguments of type A.

    A subclass sets its `kind`, annotates its outputs, and sets them in `build`:

        class NetworkArgs(Args, frozen=True, kw_only=True):
            names: Names
            cidr: str

        class Network(Component[NetworkArgs]):
            kind = "aws:Network"
            vpc_id: pulumi.Output[str]

            def build(self, args: NetworkArgs) -> None:
                vpc = aws.ec2.Vpc(args.names("vpc"), cidr_block=args.cidr, opts=self.child())
                self.vpc_id = vpc.id

    The annotated outputs are registered when `build` is done: a component without outputs, or one
    that leaves an output unset, is a mistake of its author and raises TypeError.
    """

    kind: ClassVar[str]
    """CLOUD:Name, e.g. aws:Network; the type token is gcluster:aws:Network."""

    def __init__(self, name: str, args: A, opts: pulumi.ResourceOptions | None = None) -> None:
        """Register the component, build what is in it, register its outputs."""
        super().__init__(f"gcluster:{self.kind}", name, {}, opts)
        self.build(args)
        self.register_outputs({output: self._output(output) for output in self.output_names()})

    def build(self, args: A) -> None:
        """Make the resources with `opts=self.child()` and set the annotated outputs."""
        raise NotImplementedError

    def child(self, other: pulumi.ResourceOptions | None = None, /) -> pulumi.ResourceOptions:
        """Return options for a resource in this component; `other` may add to them."""
        return pulumi.ResourceOptions.merge(other, pulumi.ResourceOptions(parent=self))

    @classmethod
    def output_names(cls) -> tuple[str, ...]:
        """Return the annotated outputs, those of base classes first."""
        own = (base for base in reversed(cls.__mro__) if issubclass(base, Component))
        names = [
            name
            for base in own
            if base is not Component
            for name, annotation in inspect.get_annotations(base).items()
            if not name.startswith("_") and "ClassVar" not in str(annotation)
        ]
        if not names:
            message = f"component {cls.__name__} annotates no outputs"
            raise TypeError(message)
        return tuple(dict.fromkeys(names))

    def _output(self, name: str) -> object:
        try:
            return self.__dict__[name]
        except KeyError:
            message = f"component {type(self).__name__} never set its output {name}"
            raise TypeError(message) from None


KEPT = pulumi.ResourceOptions(protect=True, retain_on_delete=True)
"""Of data, and of what it can't do without: neither `down` nor a change of the spec removes it."""


class RuleGroup:
    """A security group with the rules made for it; what no rule allows is refused."""

    def __init__(
        self,
        names: Names,
        what: str,
        group_id: pulumi.Output[str],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Hold a group; `what` is part of the names of the rules that are made for it."""
        self._names = names
        self._what = what
        self._opts = opts
        self.id = group_id
        self.rules: list[pulumi.Resource] = []
        """Those made so far: what is refused without them comes after."""


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
    """Return the form of Auto Scaling groups, which propagate the tags to their machines.

    A key occurs once, as in a mapping: AWS has one tag of a key.
    """
    ours = ({"key": k, "value": v, "propagate_at_launch": True} for k, v in theirs.items())
    kept = [
        one
        for one in (own if isinstance(own, list | tuple) else ())
        if (one["key"] if isinstance(one, dict) else one.key) not in theirs
    ]
    return [*kept, *ours]


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
    """Return whether `tags` is a list of key, value and propagation (AWS Auto Scaling groups)."""
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


class SlowKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of resource whose provider gives up too early; times as Pulumi writes them: "2h"."""

    create: str | None = None
    """None: the provider's own time, as for the others."""
    update: str | None = None
    delete: str | None = None
    reason: str
    """What takes so long, the provider's own limit, and the source."""


@cache
def slow_kinds(cloud: str) -> dict[str, SlowKind]:
    """Return type token ("aws:eks/cluster:Cluster") -> times, of the kinds that are slow."""
    return read_data(cloud, "timeouts", dict[str, SlowKind])


def wait_for_slow_kinds(cloud: str) -> None:
    """Set timeouts for the running program's slow resources; call it first.

    Timeouts that a resource sets itself are kept.
    """
    known = slow_kinds(cloud)

    def wait(
        args: pulumi.ResourceTransformationArgs,
    ) -> pulumi.ResourceTransformationResult | None:
        slow = known.get(args.type_)
        if slow is None or args.opts.custom_timeouts is not None:
            return None
        times = pulumi.CustomTimeouts(create=slow.create, update=slow.update, delete=slow.delete)
        opts = pulumi.ResourceOptions.merge(
            args.opts, pulumi.ResourceOptions(custom_timeouts=times)
        )
        return pulumi.ResourceTransformationResult(props=args.props, opts=opts)

    register_stack_transformation(wait)
