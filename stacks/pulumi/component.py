"""The base of our Pulumi components: typed arguments, parent passed on, outputs registered."""

from __future__ import annotations

import inspect
from typing import ClassVar, Generic, TypeVar

import msgspec
import pulumi

A = TypeVar("A", bound="Args")


class Args(msgspec.Struct, frozen=True, kw_only=True):
    """Base of a component's arguments: named, frozen; values may be outputs of others.

    A subclass says `frozen=True, kw_only=True` again: msgspec and mypy don't inherit all of it.
    """


class Component(pulumi.ComponentResource, Generic[A]):
    """A component with arguments of type A.

    A subclass says its `kind`, annotates its outputs, and sets them in `build`:

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
