"""What is queried of AWS before `up`: moto where it has the API, recorded answers elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from gcluster.schemas.catalog import Catalog
from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.stacks.aws.api import Api, AwsError
from gcluster.stacks.aws.plan.types import SitePlan
from gcluster.stacks.aws.preflight.blocks import check_block_offering
from gcluster.stacks.aws.preflight.capacity import check_reservation
from gcluster.stacks.aws.preflight.existing import check_account, check_groups, check_network
from gcluster.stacks.aws.preflight.questions import preflight

from .conftest import IMAGE, NONE, Recorded, existing, spec_of


@pytest.mark.usefixtures("calm")
def test_a_spec_that_fits_gets_its_prices_and_nothing_else(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan]
) -> None:
    findings = preflight(api, spec_of(IMAGE), planned(), catalog)
    assert {finding.code for finding in findings} == {"GC979"}
    assert not any(finding.is_error for finding in findings)


def test_missing_credentials_are_one_warning_that_lists_what_is_not_known(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    [only] = preflight(api, spec_of(IMAGE), planned(), catalog)
    assert (only.code, only.severity) == ("GC970", Severity.WARNING)
    assert "quota L-417A185B" in only.detail
    assert "aws sso login" in only.hint


@pytest.mark.usefixtures("calm")
def test_one_question_that_fails_leaves_the_others(
    api: Api, catalog: Catalog, planned: Callable[..., SitePlan], aws_api: Recorded
) -> None:
    aws_api.answer("ec2", "DescribeInstanceTypeOfferings", "unauthorized.xml", 403)
    findings = preflight(api, spec_of(IMAGE), planned(), catalog)
    unanswered = [finding for finding in findings if finding.code == "GC970"]
    assert [finding.summary.partition(":")[0] for finding in unanswered] == [
        'zones of pool "head"',
        'zones of pool "train"',
    ]
    assert all("UnauthorizedOperation" in finding.detail for finding in unanswered)
    assert "GC979" in {finding.code for finding in findings}


DENIED_XML = (
    b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>no</Message></Error></ErrorResponse>"
)
DENIED_JSON = b'{"__type": "AccessDeniedException", "message": "you may not"}'
ABSENT_JSON = b'{"__type": "NoSuchResourceException", "message": "not in this Region"}'


@pytest.mark.parametrize(
    ("service", "operation", "body", "what"),
    [
        ("sts", "GetCallerIdentity", DENIED_XML, "the account"),
        ("service-quotas", "GetServiceQuota", DENIED_JSON, "quota L-417A185B"),
        ("service-quotas", "GetServiceQuota", DENIED_JSON, "what is left of quota L-417A185B"),
        ("service-quotas", "GetServiceQuota", ABSENT_JSON, "quota L-417A185B"),
        ("ec2", "DescribeInstances", b"", "what is left of quota L-417A185B"),
        ("ec2", "DescribeInstanceTypeOfferings", b"", 'zones of pool "train"'),
        ("ec2", "DescribeImages", b"", "image ami-1e749f67"),
        ("pricing", "GetProducts", DENIED_JSON, "on-demand price of p5.48xlarge"),
    ],
)
def test_each_question_that_is_refused_is_named(
    api: Api,
    catalog: Catalog,
    planned: Callable[..., SitePlan],
    calm: Recorded,
    *,
    service: str,
    operation: str,
    body: bytes,
    what: str,
) -> None:
    if body:
        calm.record(service, operation, body, 403)
    else:
        calm.answer(service, operation, "unauthorized.xml", 403)
    answer = [f for f in preflight(api, spec_of(IMAGE), planned(), catalog) if f.code == "GC970"]
    assert all(finding.severity is Severity.WARNING for finding in answer)
    assert all(not f.detail or f.detail not in f.summary for f in answer)
    assert all("goes on from it" not in finding.hint for finding in answer)
    assert any(finding.summary.startswith(f"{what}: not checked") for finding in answer)


@pytest.mark.parametrize(
    ("operation", "ask"),
    [
        ("DescribeSubnets", lambda api, plan: check_network(api, plan, NONE)),
        ("DescribeSecurityGroups", check_groups),
        (
            "DescribeCapacityReservations",
            lambda api, plan: check_reservation(
                api, plan.pool("train"), plan.pool("train").offers[0], NONE
            ),
        ),
        (
            "DescribeCapacityBlockOfferings",
            lambda api, plan: check_block_offering(
                api, plan.pool("train"), plan.pool("train").offers[1], NONE
            ),
        ),
    ],
)
def test_what_may_not_be_read_is_no_answer(
    api: Api,
    planned: Callable[..., SitePlan],
    aws_api: Recorded,
    operation: str,
    ask: Callable[[Api, SitePlan], Iterator[Diagnostic]],
) -> None:
    aws_api.answer("ec2", operation, "unauthorized.xml", 403)
    market = "market: [{reservation: cr-0abc}, {buy_capacity_block: 7d}]"
    text = existing("subnet-0a", "vpc-0a", "sg-0a").replace("count: 2", f"count: 2, {market}")
    with pytest.raises(AwsError, match="may not do this"):
        list(ask(api, planned(text)))


def test_a_page_that_is_not_from_aws_is_an_error_and_no_traceback(
    api: Api, planned: Callable[..., SitePlan], aws_api: Recorded
) -> None:
    page = b"<!DOCTYPE html>\n<html><body>" + b"<p>Sign in to the proxy</p>\n" * 500
    aws_api.record("sts", "GetCallerIdentity", page, 403)
    with pytest.raises(AwsError) as caught:
        list(check_account(api, planned()))
    (found,) = caught.value.diagnostics
    assert found.detail.startswith('HTTP 403: a page of HTML, "Sign in to the proxy')
    assert (found.detail.count("\n"), len(found.detail) < 120) == (0, True)
