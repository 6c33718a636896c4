"""A machine as the list of whoever rents it out names it."""

from typing import Annotated, ClassVar

from msgspec import Meta

from ..noun import Noun, updates
from ..words import HostKey, LoginUser

Address = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9.:_-]*$(?!\n)")]
"""An IPv4 or IPv6 address, or a DNS name."""


class ListedHost(Noun, frozen=True):
    """A machine of the list; what it leaves out is the site's."""

    UPDATES: ClassVar = updates(in_place="address name user port host_key")

    address: Annotated[
        Address,
        Meta(description="Address that SSH and the other nodes use.", examples=["192.0.2.11"]),
    ]
    name: Annotated[
        str | None,
        Meta(description="Host of a pool that it is; without names, the next that has none."),
    ] = None
    user: Annotated[LoginUser | None, Meta(description="Login user.")] = None
    port: Annotated[
        Annotated[int, Meta(ge=1, le=65535)] | None, Meta(description="TCP port of sshd.")
    ] = None
    host_key: Annotated[HostKey | None, Meta(description="Public host key to pin.")] = None
