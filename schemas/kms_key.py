"""Which cloud a key of a key management service is of: its full name tells."""

from __future__ import annotations

import re

_FORMS = {
    "aws": re.compile(r"arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:(key|alias)/.+"),
    "gcp": re.compile(r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+"),
    "azure": re.compile(r"https://[^/]+\.(vault|managedhsm)\.[a-z.]+/keys/[^/]+(/[0-9a-f]*)?"),
}


def cloud_of_key(key: str) -> str | None:
    """Return "aws", "gcp" or "azure"; None: no cloud's key has that form."""
    return next((cloud for cloud, form in _FORMS.items() if form.fullmatch(key)), None)
