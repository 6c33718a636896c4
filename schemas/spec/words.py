"""Text that ends up in a command line or a file of its own: no white space, no leading hyphen.

ssh reads a word that starts with "-" as an option, so such a user or jump host is refused here.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

_WORD = r"^[^-\s]\S*$(?!\n)"

LoginUser: TypeAlias = Annotated[str, Meta(pattern=_WORD, examples=["ops"])]
"""A login name as SSH takes it."""

Bastion: TypeAlias = Annotated[
    str, Meta(pattern=_WORD, examples=["jump.example.edu", "ops@jump.example.edu:2222"])
]
"""[user@]host[:port] as in ssh -J."""

FilePath: TypeAlias = Annotated[
    str, Meta(pattern=r"^[^-\r\n][^\r\n]*$(?!\n)", examples=["~/.ssh/id_ed25519"])
]
"""A path on the machine that runs gcluster; ~ is the home folder there."""

HostKey: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9@.-]+ [A-Za-z0-9+/=.]+( [^\r\n]*)?$(?!\n)",
        examples=["ssh-ed25519 AAAA..."],
    ),
]
"""A public host key: its type and its base64 text, as in known_hosts without the host."""
