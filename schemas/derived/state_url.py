"""A `state:` URL taken apart: the one reading of it, translated for each library that opens it.

What follows "?" is written as the Go CDK names it, since Pulumi takes it as it is.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, get_args
from urllib.parse import parse_qsl, urlsplit

import msgspec

StateScheme: TypeAlias = Literal["file", "s3", "gs", "azblob"]

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
"""S3 bucket naming rules, and GCS's, which are the same but for dotted names."""
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")
_CONTAINER = re.compile(r"\$root|[a-z0-9](-?[a-z0-9]){2,62}")
"""Azure: an account of 3 to 24 letters and digits, and a container of 3 to 63."""

OPTIONS: dict[StateScheme, tuple[str, ...]] = {
    "file": (),
    "s3": ("region", "endpoint", "profile", "use_path_style"),
    "gs": (),
    "azblob": ("domain", "protocol", "localemu"),
}
"""What may follow "?": names of the Go CDK (s3blob, gcsblob, azureblob; November 2026).
A store in place of Google's own is named by STORAGE_EMULATOR_HOST, as in Google's libraries."""
_HOST = r"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?"
_FORMS = {
    "region": re.compile(r"[a-z0-9-]+"),
    "endpoint": re.compile(rf"https?://{_HOST}(/[A-Za-z0-9._~/-]*)?"),
    "domain": re.compile(_HOST),
    "protocol": re.compile(r"https?"),
}
_FORM_EXAMPLES = {
    "region": "us-east-1",
    "endpoint": "https%3A%2F%2FHOST%3APORT",
    "domain": "blob.core.chinacloudapi.cn",
    "protocol": "https",
}
"""What becomes part of an address: clients end in a panic, or call elsewhere, at another form."""
EXAMPLES: dict[StateScheme, str] = {
    "file": "file:///srv/gcluster/research: three slashes",
    "s3": "s3://BUCKET/PREFIX, the bucket in lower-case letters",
    "gs": "gs://BUCKET/PREFIX, the bucket in lower-case letters",
    "azblob": "azblob://ACCOUNT/CONTAINER/PREFIX",
}


class StateUrl(msgspec.Struct, frozen=True, kw_only=True):
    """Where state is kept."""

    scheme: StateScheme
    bucket: str = ""
    """S3 or GCS bucket, or Azure container; "" for a directory."""
    account: str = ""
    """Azure's storage account."""
    path: str = ""
    """Of a directory its absolute path; else what precedes all keys, without slashes."""
    options: dict[str, str] = {}

    @property
    def is_shared(self) -> bool:
        """Whether other machines reach it, too."""
        return self.scheme != "file"


def parse_state_url(url: str) -> StateUrl:
    """Take a state URL apart.

    Raises:
        ValueError: it has another form; the message says which is meant.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in get_args(StateScheme):
        raise ValueError(
            "write file:///PATH, s3://BUCKET, gs://BUCKET or azblob://ACCOUNT/CONTAINER"
        )
    if scheme == "file":
        # A path is there as it is: "?" and "%" are characters like others.
        if not re.fullmatch(r"/[^/].*", rest, re.DOTALL):
            raise ValueError(f"write {EXAMPLES['file']}")
        return StateUrl(scheme="file", path=rest.rstrip("/"))
    parts = urlsplit(url)
    account, bucket, path = "", parts.netloc, parts.path.strip("/")
    if scheme == "azblob":
        account, (bucket, _, path) = bucket, path.partition("/")
    known: StateScheme = "s3" if scheme == "s3" else "gs" if scheme == "gs" else "azblob"
    fits = _CONTAINER.fullmatch(bucket) if account else _BUCKET.fullmatch(bucket)
    if not fits or (scheme == "azblob" and not _ACCOUNT.fullmatch(account)):
        raise ValueError(f"write {EXAMPLES[known]}")
    return StateUrl(
        scheme=known,
        bucket=bucket,
        account=account,
        path=path,
        options=_options(known, parts.query),
    )


def _options(scheme: StateScheme, query: str) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    unknown = sorted(set(options) - set(OPTIONS[scheme]))
    if unknown:
        known = ", ".join(OPTIONS[scheme]) or "nothing"
        raise ValueError(f'{scheme}:// takes {known} behind "?", not {unknown[0]}')
    for name, value in options.items():
        if name in _FORMS and not _FORMS[name].fullmatch(value):
            raise ValueError(f"write {name}={_FORM_EXAMPLES[name]}")
    return options
