"""Where state is kept and which key encrypts secrets: forms that only their cloud would refuse."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gcluster.schemas.checks.registry import Finding, check
from gcluster.schemas.spec.secrets import KmsSecrets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gcluster.schemas.checks.context import CheckContext

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9](/.*)?")
"""S3 bucket naming rules, and GCS's, which are the same but for dotted names."""
_CONTAINER = re.compile(r"[a-z0-9]{3,24}/(\$root|[a-z0-9](-?[a-z0-9]){2,62})(/.*)?")
"""Azure: an account of 3 to 24 letters and digits, then a container of 3 to 63."""
_KMS = (
    re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/.+"),
    re.compile(r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+"),
    re.compile(r"https://[^/]+\.(vault|managedhsm)\.[a-z.]+/keys/[^/]+(/[0-9a-f]*)?"),
)
_FORMS = {
    "s3": (_BUCKET, "s3://BUCKET/PREFIX, the bucket in lower-case letters"),
    "gs": (_BUCKET, "gs://BUCKET/PREFIX, the bucket in lower-case letters"),
    "azblob": (_CONTAINER, "azblob://ACCOUNT/CONTAINER/PREFIX"),
    "file": (re.compile(r"/[^/].*"), "file:///srv/gcluster/research: three slashes"),
}


@check("GC581", summary="A state URL of the wrong form.")
def state_url(context: CheckContext) -> Iterator[Finding]:
    """State is at file:///PATH, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or azblob://ACCOUNT/CONTAINER.

    A file URL has three slashes: with two the first folder is taken for the name of a machine.
    """
    scheme, _, rest = (context.state or "").partition("://")
    if scheme not in _FORMS:
        return
    form, example = _FORMS[scheme]
    if not form.fullmatch(rest):
        yield Finding(
            summary=f'"{(context.state or "")[:80]}" is no place for state',
            path=("state",),
            hint=f"write {example}",
        )


@check("GC582", summary="A key of a key management service in a form that none has.")
def kms_key_form(context: CheckContext) -> Iterator[Finding]:
    """The key is named in full: an ARN (AWS), a resource name (Google Cloud), a key URL (Azure).

    A bare id or an alias alone doesn't say in which account, project or vault it is.
    """
    secrets = context.secrets
    if isinstance(secrets, KmsSecrets) and not any(form.fullmatch(secrets.key) for form in _KMS):
        yield Finding(
            summary=f'"{secrets.key[:80]}" is no key of AWS, Google Cloud or Azure',
            path=("secrets", "key"),
            hint="write arn:aws:kms:REGION:ACCOUNT:key/ID, "
            "projects/P/locations/L/keyRings/R/cryptoKeys/K, or https://VAULT.vault.azure.net/keys/K",
        )
