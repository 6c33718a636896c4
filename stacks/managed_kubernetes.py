"""What differs between the control planes that clouds run: login, joining, who repairs nodes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from .provider import ControlPlaneAt


class LoginPlugin(msgspec.Struct, frozen=True, kw_only=True):
    """The program that asks a cloud for a token when kubectl needs one."""

    program: str
    install: str
    """How it gets onto this machine, in words."""
    needs: tuple[str, ...] = ()
    """Programs that it runs itself."""
    arguments: Callable[[ControlPlaneAt], tuple[str, ...]] | None = None
    """What it is called with; None: kubectl hands it the cluster, in its environment."""


class ManagedKubernetes(msgspec.Struct, frozen=True, kw_only=True):
    """A cloud's Kubernetes, as `scheduler.control_plane` names it."""

    login: LoginPlugin
    join_hint: str
    """Where somebody sees why a node did not join."""
    repair_hint: str = ""
    """What to do about a node: the cloud chooses which go and repairs them itself; "": its nodes
    are instances of the stack, which recreates them."""
