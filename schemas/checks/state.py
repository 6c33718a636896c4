"""Where the state is kept."""

from __future__ import annotations

from collections.abc import Iterator

from ..derived.state_url import OPTIONS, parse_state_url
from ..spec.secrets import SopsSecrets
from .context import CheckContext
from .registry import Finding, check


@check("GC581", summary="A state URL of the wrong form.")
def state_url_malformed(context: CheckContext) -> Iterator[Finding]:
    """State is at file:///PATH, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or azblob://ACCOUNT/CONTAINER.

    A file URL has three slashes: with two the first folder is taken for the name of a machine.
    """
    url = context.state
    if url is None or url.partition("://")[0] not in OPTIONS:
        return
    try:
        parse_state_url(url)
    except ValueError as wrong:
        holds = "@" in url or "key" in url.lower() or "token" in url.lower()
        yield Finding(
            summary="this is no place for state, and no credential goes there"
            if holds
            else f'"{url[:80]}" is no place for state',
            path=("state",),
            hint=str(wrong),
            is_secret=holds,
        )


@check("GC583", summary="sops has no way, or two ways, to know for whom it encrypts.")
def sops_recipients(context: CheckContext) -> Iterator[Finding]:
    """Who can open the data key is said by `file` or by `age`, and by one of them alone.

    `file` names a path next to the spec: the rule of .sops.yaml that fits it decides. `age` lists
    recipients.
    """
    secrets = context.secrets
    if not isinstance(secrets, SopsSecrets) or (secrets.file is None) != (not secrets.age):
        return
    several = secrets.file is not None
    yield Finding(
        summary="secrets has recipients of sops both by file and by age"
        if several
        else "secrets doesn't say for whom sops encrypts",
        path=("secrets", "age") if several else ("secrets",),
        hint="keep one of them"
        if several
        else "add age: [age1...], or file: secrets.yaml, for which .sops.yaml has a rule",
    )
