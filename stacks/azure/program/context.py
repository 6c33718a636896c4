"""What all parts of a site's program share: the plan and the login's subscription."""

from __future__ import annotations

import msgspec
import pulumi
from pulumi_azure_native.provider import Provider

from ..plan.types import SitePlan


class ProgramContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where a program stands."""

    plan: SitePlan
    options: pulumi.ResourceOptions
    """Of components below the stack: the provider of the site's subscription."""


def program_context(plan: SitePlan) -> ProgramContext:
    """Register the provider of the site's subscription, whatever the login's own default is."""
    provider = Provider(
        plan.names("azure"), subscription_id=plan.subscription, location=plan.region
    )
    return ProgramContext(plan=plan, options=pulumi.ResourceOptions(provider=provider))
