"""A secret that AWS Secrets Manager keeps."""

from __future__ import annotations

from ..provider import provider_error
from .api import Answer, Api

_ARN_PARTS = 7


class _Value(Answer, frozen=True):
    secret_string: str | None = None


def read(place: str) -> str:
    """Return the text of the secret with this ARN, in its newest version.

    Raises:
        ProviderError: it can't be read, or is no text (GC917).
    """
    parts = place.split(":", maxsplit=_ARN_PARTS - 1)
    if len(parts) < _ARN_PARTS or parts[2] != "secretsmanager":
        raise provider_error("GC917", "it is no ARN of a secret of AWS Secrets Manager")
    answer = Api(parts[3]).ask(_Value, "secretsmanager", "get_secret_value", SecretId=place)
    if answer.secret_string is None:
        raise provider_error("GC917", "it is binary, and text is needed")
    return answer.secret_string
