"""Whether what the site brings is there and fits: account, network, keys, roles, images."""

from __future__ import annotations

from collections.abc import Iterator

from ....schemas.diagnostics import Diagnostic, Severity
from ...pulumi.preflight import ExistingMachines, finding
from ..api import Answer, Api, AwsError
from ..plan.facts import SPOT_ROLE
from ..plan.types import ImagePlan, SitePlan


class _Caller(Answer, frozen=True):
    account: str
    arn: str


class _Subnet(Answer, frozen=True):
    subnet_id: str
    vpc_id: str
    availability_zone_id: str = ""
    available_ip_address_count: int = 0


class _Subnets(Answer, frozen=True):
    subnets: tuple[_Subnet, ...] = ()


class _Peer(Answer, frozen=True):
    group_id: str = ""


class _Permission(Answer, frozen=True):
    ip_protocol: str = ""
    user_id_group_pairs: tuple[_Peer, ...] = ()


class _SecurityGroup(Answer, frozen=True):
    group_id: str
    vpc_id: str = ""
    ip_permissions: tuple[_Permission, ...] = ()
    ip_permissions_egress: tuple[_Permission, ...] = ()


class _SecurityGroups(Answer, frozen=True):
    security_groups: tuple[_SecurityGroup, ...] = ()


class _Image(Answer, frozen=True):
    image_id: str
    architecture: str = ""
    state: str = "available"
    root_device_name: str = ""


class _Images(Answer, frozen=True):
    images: tuple[_Image, ...] = ()


class _Parameter(Answer, frozen=True):
    value: str


class _ParameterAnswer(Answer, frozen=True):
    parameter: _Parameter


class _KeyMetadata(Answer, frozen=True):
    key_state: str = ""


class _Key(Answer, frozen=True):
    key_metadata: _KeyMetadata


_ARCHITECTURES = {"x86_64": "x86_64", "arm64": "aarch64"}


def check_account(api: Api, plan: SitePlan) -> Iterator[Diagnostic]:
    """Yield a finding where another account is logged in than the site names."""
    caller = api.call(_Caller, "sts", "get_caller_identity")
    if plan.account is not None and caller.account != plan.account:
        yield finding(
            "GC971",
            f'site "{plan.labels.site}" is for account {plan.account}, but {caller.account} is '
            "logged in",
            detail=f"logged in as {caller.arn}",
            hint="choose the login with AWS_PROFILE",
        )


def check_rights(api: Api, plan: SitePlan) -> Iterator[Diagnostic]:
    """Yield the calls that the login may not make. EC2 answers dry runs, and makes nothing."""
    made: dict[str, dict[str, object]] = {
        "create_launch_template": {
            "LaunchTemplateName": plan.names("dry-run"),
            "LaunchTemplateData": {"InstanceType": "m7i.large"},
        },
        "create_placement_group": {"GroupName": plan.names("dry-run"), "Strategy": "cluster"},
    }
    if plan.network.vpc is None:
        made["create_vpc"] = {"CidrBlock": plan.network.cidr}
        made["create_internet_gateway"] = {}
        made["allocate_address"] = {"Domain": "vpc"}
    for operation, parameters in made.items():
        try:
            api.call(Answer, "ec2", operation, DryRun=True, **parameters)
        except AwsError as error:
            if error.code == "UnauthorizedOperation":
                yield finding(
                    "GC971",
                    f"the login may not call {operation}, which `up` needs",
                    detail=error.diagnostics[0].detail,
                    hint=error.diagnostics[0].hint,
                )
            elif error.code != "DryRunOperation":
                raise


def check_network(api: Api, plan: SitePlan, existing: ExistingMachines) -> Iterator[Diagnostic]:
    """Yield what is wrong with a network that exists: subnets missing, elsewhere, too full."""
    network = plan.network
    if network.vpc is None:
        return
    inside = [pool for pool in plan.pools if not pool.public]
    most = sum(max(0, pool.most - existing.of(pool.name)) for pool in inside)
    zone = next((offer.zone for pool in plan.pools for offer in pool.offers if offer.zone), None)
    for subnet, need in ((network.compute_subnet, most), (network.public_subnet, 0)):
        if subnet is None:
            continue
        missing, requested = "InvalidSubnetID.NotFound", {"SubnetIds": [subnet]}
        answer = api.find(_Subnets, "ec2", "describe_subnets", missing=missing, **requested)
        if answer is None:
            yield finding("GC976", f"subnet {subnet} is not in {api.region} of this account")
            continue
        found = answer.subnets[0]
        if found.vpc_id != network.vpc:
            yield finding("GC976", f"subnet {subnet} is in {found.vpc_id}, not {network.vpc}")
        if need and zone is not None and found.availability_zone_id not in {"", zone}:
            yield finding(
                "GC976", f"subnet {subnet} is in {found.availability_zone_id}, not {zone}"
            )
        if found.available_ip_address_count < need:
            yield finding(
                "GC976",
                f"subnet {subnet} has {found.available_ip_address_count} free addresses, the "
                f"nodes still need {need}",
                severity=Severity.WARNING,
            )


def check_groups(api: Api, plan: SitePlan) -> Iterator[Diagnostic]:
    """Yield security groups that are missing, and that EFA can't use: it needs all, both ways."""
    wanted = plan.network.security_groups
    efa = any(i.kind == "efa-only" for pool in plan.pools for i in pool.interfaces)
    if not wanted:
        return
    missing, requested = "InvalidGroup.NotFound", {"GroupIds": list(wanted)}
    answer = api.find(
        _SecurityGroups, "ec2", "describe_security_groups", missing=missing, **requested
    )
    if answer is None:
        yield finding("GC976", f"not all of the security groups {', '.join(wanted)} exist")
        return
    if efa and not any(_is_open_to_itself(group) for group in answer.security_groups):
        yield finding(
            "GC976",
            f"none of the security groups {', '.join(wanted)} lets in and out all of itself, "
            "which EFA needs",
            hint="add a rule for all traffic from the group itself, and one to itself",
        )


def _is_open_to_itself(group: _SecurityGroup) -> bool:
    def open_to_itself(permissions: tuple[_Permission, ...]) -> bool:
        return any(
            permission.ip_protocol == "-1"
            and any(peer.group_id == group.group_id for peer in permission.user_id_group_pairs)
            for permission in permissions
        )

    return open_to_itself(group.ip_permissions) and open_to_itself(group.ip_permissions_egress)


def check_image(
    api: Api, image: ImagePlan, architecture: str, pools: tuple[str, ...]
) -> Iterator[Diagnostic]:
    """Yield what keeps an image from booting the nodes of some pools."""
    lead = f"image of pools {', '.join(pools)}"
    if not image.ami:
        yield finding(
            "GC977", f"{lead}: no image of the distribution is known; name one: image: AMI"
        )
        return
    ami = _resolved(api, image)
    answer = api.find(_Images, "ec2", "describe_images", missing="InvalidAMIID", ImageIds=[ami])
    if answer is None or not answer.images:
        yield finding("GC977", f"{lead}: {ami} is not in {api.region}, or not for this account")
        return
    found = answer.images[0]
    if _ARCHITECTURES.get(found.architecture) != architecture:
        yield finding("GC977", f"{lead}: {ami} is for {found.architecture}, not {architecture}")
    if found.state != "available":
        yield finding("GC977", f"{lead}: {ami} is {found.state}")
    if found.root_device_name and found.root_device_name != image.root_device:
        yield finding(
            "GC977",
            f"{lead}: {ami} boots from {found.root_device_name}, not {image.root_device}",
            hint="say the distribution that the image has: software: {distribution: ...}",
        )


def _resolved(api: Api, image: ImagePlan) -> str:
    """Return the AMI that EC2 would boot now."""
    if image.is_fixed:
        return image.ami
    name = image.ami.removeprefix("resolve:ssm:")
    return api.call(_ParameterAnswer, "ssm", "get_parameter", Name=name).parameter.value


def check_key(api: Api, key: str) -> Iterator[Diagnostic]:
    """Yield a finding where the key of disks and file systems is missing or not in use."""
    found = api.find(_Key, "kms", "describe_key", missing="NotFoundException", KeyId=key)
    state = "missing" if found is None else found.key_metadata.key_state
    if state != "Enabled":
        yield finding("GC976", f"the key {key} is {state}")


def check_profile(api: Api, profile: str) -> Iterator[Diagnostic]:
    """Yield a finding where an instance profile is missing."""
    missing, requested = "NoSuchEntity", {"InstanceProfileName": profile}
    if api.find(Answer, "iam", "get_instance_profile", missing=missing, **requested) is None:
        yield finding("GC976", f"instance profile {profile} does not exist in this account")


def check_spot_role(api: Api, pools: tuple[str, ...]) -> Iterator[Diagnostic]:
    """Yield a warning where the account has no role of spot requests yet.

    EC2 makes it with the first request of a login that may; who may not is refused at the launch
    (AuthFailure.ServiceLinkedRoleCreationNotPermitted).
    """
    if api.find(Answer, "iam", "get_role", missing="NoSuchEntity", RoleName=SPOT_ROLE) is None:
        yield finding(
            "GC976",
            f"pools {', '.join(pools)} buy spot, and this account has no role {SPOT_ROLE} yet",
            detail="The first spot request makes it if the login has iam:CreateServiceLinkedRole; "
            "without it every spot launch is refused.",
            hint="aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
            severity=Severity.WARNING,
        )
