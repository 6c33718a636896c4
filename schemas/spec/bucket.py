"""Where objects are kept: a bucket of any cloud that sites can be on."""

from typing import Annotated, TypeAlias, get_args

from msgspec import Meta

from .sites import Site

_SCHEMES = "|".join(site.bucket_scheme for site in get_args(Site) if site.bucket_scheme)

BucketUrl: TypeAlias = Annotated[
    str,
    Meta(
        pattern=rf"^({_SCHEMES})://[^\s/]+(/[^\s]*)?$(?!\n)",
        examples=["s3://datasets", "gs://datasets/train", "az://account/container"],
    ),
]
"""A bucket, or a prefix in one; each cloud's sites say the scheme of their buckets."""
