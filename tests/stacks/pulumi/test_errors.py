"""Refusals of clouds are shown by resource, cause and next step, with their original text."""

from pathlib import Path

import msgspec
import pytest

from gcluster.schemas.codes import register
from gcluster.stacks.pulumi.engine.events import NO_CAPACITY, cause, translate


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """A message that was seen, and what must be made of it."""

    name: str
    text: str
    code: str
    says: str = ""
    hint: str = ""
    source: str = ""
    synthetic: bool = False


MESSAGES = msgspec.yaml.decode(
    (Path(__file__).parent / "messages.yaml").read_bytes(), type=list[Message]
)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
def test_a_refusal_is_understood(message: Message) -> None:
    assert bool(message.source) is not message.synthetic, "each message says where it was seen"
    found = translate(message.text, resource="Instance gpu-0")
    assert found.code == message.code
    assert found.summary.startswith("Instance gpu-0: ")
    assert message.says in found.summary
    assert "\n" not in found.summary
    assert found.detail == message.text.strip()
    assert found.hint
    assert message.hint in found.hint


def test_every_cause_has_a_message_and_a_registered_code() -> None:
    seen = {message.code for message in MESSAGES}
    assert seen == {f"GC96{n}" for n in range(7)} - {"GC965"}
    assert seen <= register().keys()


def test_the_cause_can_be_requested() -> None:
    found = {cause(translate(message.text)) for message in MESSAGES}
    assert found == {"locked", "expired", "capacity", "quota", "permission", "other"}
    assert translate("AllocationFailed").code == NO_CAPACITY


@pytest.mark.parametrize("text", ["", "  \n", "error: update failed"])
def test_a_message_that_is_empty_is_still_a_finding(text: str) -> None:
    assert translate(text).summary.startswith("the cloud refused: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Forbidden: <!DOCTYPE html>\n<html><head><title>403 Forbidden</title></head>\n"
            + "<p>blocked by policy</p>\n" * 400
            + "</html> (HTTP 403, request None)",
            'Forbidden: a page of HTML, "403 Forbidden" (HTTP 403, request None)',
        ),
        (
            "Further retries may succeed:\nb'<html>\\n<h1>Sign in</h1>\\n<hr>\\n</html>'",
            'Further retries may succeed:\na page of HTML, "Sign in"',
        ),
        (
            "HTTP 502: <HTML><style>p {}</style><p>The server\nis away" + " and away" * 50,
            f'HTTP 502: a page of HTML, "The server is away{" and away" * 6} and awa"',
        ),
        ("HTTP 200: <html></html>", "HTTP 200: a page of HTML"),
    ],
    ids=["with a title", "as botocore prints bytes", "cut short, without a title", "empty"],
)
def test_of_a_page_of_html_its_title_is_reported(text: str, message: str) -> None:
    assert translate(text).detail == message
