"""A state URL is read in one place, and refused with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.schemas.derived.state_url import StateUrl, parse_state_url
from gcluster.schemas.load import load


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("file:///srv/a b/50%?#", StateUrl(scheme="file", path="/srv/a b/50%?#")),
        ("s3://acme", StateUrl(scheme="s3", bucket="acme")),
        ("gs://acme.org/a/b/", StateUrl(scheme="gs", bucket="acme.org", path="a/b")),
        (
            "s3://acme/x?region=eu-west-1&endpoint=http%3A%2F%2Fminio%3A9000",
            StateUrl(
                scheme="s3",
                bucket="acme",
                path="x",
                options={"region": "eu-west-1", "endpoint": "http://minio:9000"},
            ),
        ),
        (
            "azblob://acct/box/a/b?domain=blob.core.chinacloudapi.cn",
            StateUrl(
                scheme="azblob",
                account="acct",
                bucket="box",
                path="a/b",
                options={"domain": "blob.core.chinacloudapi.cn"},
            ),
        ),
    ],
)
def test_a_url_is_taken_apart(url: str, expected: StateUrl) -> None:
    assert parse_state_url(url) == expected
    assert expected.is_shared is (expected.scheme != "file")


@pytest.mark.parametrize(
    ("url", "instead"),
    [
        ("", "file:///PATH"),
        ("http://x/y", "azblob://ACCOUNT/CONTAINER"),
        ("file://here", "three slashes"),
        ("file:////x", "three slashes"),
        ("s3://", "s3://BUCKET"),
        ("s3://Upper", "lower-case"),
        ("s3://key:secret@acme/x", "s3://BUCKET"),
        ("azblob://acct", "ACCOUNT/CONTAINER"),
        ("azblob://a_b/box", "ACCOUNT/CONTAINER"),
        ("s3://acme?aws_secret_access_key=x", "region"),
        ("gs://acme?x=1", "takes nothing"),
        ("s3://acme?endpoint=http%3A%2F%2F127.0.0.1%3A9000x", "endpoint=https%3A%2F%2FHOST"),
        ("s3://acme?endpoint=127.0.0.1%3A9000", "endpoint=https%3A%2F%2FHOST"),
        ("s3://acme?endpoint=http%3A%2F%2Fkey%3Asecret%40here", "endpoint=https%3A%2F%2FHOST"),
        ("s3://acme?endpoint=", "endpoint=https%3A%2F%2FHOST"),
        ("s3://acme?region=x.evil.example%2F", "region=us-east-1"),
        ("azblob://acct/box?domain=a%2Fb", "domain=blob"),
        ("azblob://acct/box?protocol=ftp", "protocol=https"),
    ],
)
def test_what_names_no_place_is_refused_with_what_to_write(url: str, instead: str) -> None:
    with pytest.raises(ValueError, match=r"write|takes") as caught:
        parse_state_url(url)
    assert instead in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["s3://AKIA:hunter2@acme/x", "s3://acme?secret_access_key=hunter2", "gs://acme?token=hunter2"],
)
def test_a_credential_in_a_url_is_refused_and_never_shown(tmp_path: Path, url: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(
        f"apiVersion: gcluster/v1\nname: demo\nstate: {url}\nsites: {{}}\npools: {{}}\n"
    )
    (found,) = [each for each in load(path).diagnostics if each.code == "GC581"]
    assert found.is_secret
    assert "hunter2" not in f"{found.summary} {found.detail} {found.hint}"
