"""Queries of a cloud run concurrently; a missing answer is reported, and hides no other."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import msgspec
import pytest

from gcluster.schemas.diagnostics import Diagnostic, Severity
from gcluster.stacks.provider import ProviderError, provider_error
from gcluster.stacks.pulumi.preflight import (
    Cloud,
    ExistingMachines,
    Question,
    finding,
    price_finding,
    run_preflight,
)

CLOUD = Cloud(name="Nimbus", not_logged_in="GC970", unanswered="GC988")
SMALL = finding("GC972", "a quota is too small")


def well() -> Iterator[Diagnostic]:
    yield from ()


def small() -> Iterator[Diagnostic]:
    yield SMALL


def logged_out() -> Iterator[Diagnostic]:
    raise provider_error("GC963", "the login has expired", detail="said so", hint="log in")
    yield


def refused() -> Iterator[Diagnostic]:
    yield SMALL
    raise provider_error("GC962", "the login may not do this", detail="Denied", hint="ask")


def odd() -> Iterator[Diagnostic]:
    msgspec.json.decode(b'{"a": "x"}', type=dict[str, int])
    yield SMALL


def test_where_nothing_exists_in_the_way_nothing_is_reported() -> None:
    assert run_preflight(CLOUD, [Question("this", well)]) == ()


def test_answers_come_in_the_order_of_the_questions_and_once() -> None:
    first = finding("GC973", "a zone has none")
    requested = [Question("a", lambda: [first]), Question("b", small), Question("c", small)]
    assert run_preflight(CLOUD, requested) == (first, SMALL)


def test_all_questions_are_open_at_the_same_time() -> None:
    meeting = threading.Barrier(8, timeout=30)

    def meet() -> Iterator[Diagnostic]:
        meeting.wait()
        yield SMALL

    assert run_preflight(CLOUD, [Question(str(n), meet) for n in range(8)]) == (SMALL,)


def test_a_question_without_an_answer_is_a_warning_with_the_clouds_message() -> None:
    answer, other = run_preflight(CLOUD, [Question("the quota", refused), Question("b", small)])
    assert (answer.code, answer.severity) == ("GC988", Severity.WARNING)
    assert answer.summary == "the quota: not checked, the login may not do this"
    assert (answer.detail, answer.hint) == ("Denied", "ask")
    assert other == SMALL


def test_an_answer_that_cannot_be_read_is_no_traceback() -> None:
    [answer] = run_preflight(CLOUD, [Question("the quota", odd)])
    assert answer.summary == "the quota: not checked, the answer can't be read"
    assert "Expected `int`" in answer.detail


def test_all_that_needs_a_login_is_one_warning_and_the_rest_is_answered() -> None:
    requested = [Question("a", logged_out), Question("b", small), Question("c", logged_out)]
    answer, other = run_preflight(CLOUD, requested)
    assert (answer.code, answer.severity) == ("GC970", Severity.WARNING)
    assert answer.summary == "not logged in to Nimbus: 2 questions were not answered"
    assert answer.detail.splitlines() == ["Not known: a, c", "said so"]
    assert other == SMALL


def test_what_is_is_queried_once_and_only_when_needed() -> None:
    requested: list[str] = []

    def pools() -> list[str]:
        requested.append("pools")
        return ["gpu", "gpu", "head"]

    existing = ExistingMachines(pools)
    assert requested == []
    assert (existing.of("gpu"), existing.of("head"), existing.of("none")) == (2, 1, 0)
    assert requested == ["pools"]


def test_what_is_is_unknown_to_every_question_that_needs_it() -> None:
    def silent() -> list[str]:
        raise provider_error("GC962", "may not list")

    existing = ExistingMachines(silent)
    for _ in range(2):
        with pytest.raises(ProviderError):
            existing.of("gpu")


@pytest.mark.parametrize(
    ("known", "severity", "more"),
    [
        (10.0, Severity.NOTE, ""),
        (10.5, Severity.NOTE, ""),
        (10.6, Severity.WARNING, "; the catalog says 10.60"),
        (None, Severity.NOTE, "; the catalog has no price"),
    ],
)
def test_a_price_is_held_against_the_catalog(
    known: float | None, severity: Severity, more: str
) -> None:
    answer = price_finding(
        "GC979", "p9", "spot", 10.0, source="the list, 5 minutes old", known=known
    )
    assert answer.summary == f"p9 costs 10.00 USD an hour (spot){more}"
    assert (answer.severity, answer.detail) == (severity, "the list, 5 minutes old")
