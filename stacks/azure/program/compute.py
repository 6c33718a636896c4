"""Machines: scale sets that keep a compute pool on one InfiniBand, and machines with a name."""

from __future__ import annotations

import msgspec
import pulumi
from pulumi_azure_native import compute, network

from ...pulumi.component import Args, Component
from ...pulumi.names import Names
from ..plan.types import OfferPlan, PoolPlan
from .disks import boot_disk, data_disks, image_reference, security, set_disk

_PRIORITY = {"on-demand": "Regular", "reservation": "Regular", "spot": "Spot"}
_EVICTED = "Delete"
"""What becomes of spot machines that Azure takes back: stopped ones would go on holding quota."""


_MACHINE_OPTION = ["zones", "priority", "capacityReservation"]
_SET_OPTION = [
    "zones",
    "virtualMachineProfile.priority",
    "virtualMachineProfile.capacityReservation",
]
"""What another option of a market changes: machines that run can't move there."""


class MachineArgs(Args, frozen=True, kw_only=True):
    """What all machines of a pool have."""

    names: Names
    region: str
    resource_group: pulumi.Input[str]
    plan: PoolPlan
    option: OfferPlan
    user: str
    public_key: str
    custom_data: str
    """Base64; as far as SSH, nothing secret."""
    subnet_id: pulumi.Input[str]
    security_group_id: pulumi.Input[str]
    identity_ids: tuple[pulumi.Input[str], ...]
    disk_set_id: pulumi.Input[str] | None = None
    """Disk encryption set with a customer's key; with it, the host encrypts caches too."""
    tags: dict[str, str] = msgspec.field(default_factory=dict)


class ScaleSetArgs(Args, frozen=True, kw_only=True):
    """What a scale set is made from."""

    machine: MachineArgs
    name: str
    prefix: str
    """Of the names that the machines give themselves."""
    capacity: int


class ScaleSet(Component[ScaleSetArgs]):
    """Machines of a compute pool. Uniform: the mode in which InfiniBand works."""

    kind = "azure:ScaleSet"
    scale_set_id: pulumi.Output[str]
    scale_set_name: pulumi.Output[str]

    def build(self, args: ScaleSetArgs) -> None:
        """Make it."""
        plan = args.machine.plan
        made = compute.VirtualMachineScaleSet(
            args.machine.names(args.name),
            resource_group_name=args.machine.resource_group,
            location=args.machine.region,
            orchestration_mode="Uniform",
            sku=compute.SkuArgs(name=plan.machine, tier="Standard", capacity=args.capacity),
            single_placement_group=plan.single_placement,
            platform_fault_domain_count=1,
            zones=[args.machine.option.zone] if args.machine.option.zone else None,
            overprovision=False,
            proximity_placement_group=_group(plan.proximity_group),
            upgrade_policy=compute.UpgradePolicyArgs(mode=compute.UpgradeMode.MANUAL),
            scale_in_policy=compute.ScaleInPolicyArgs(rules=["NewestVM"]),
            identity=compute.VirtualMachineScaleSetIdentityArgs(
                type=compute.ResourceIdentityType.USER_ASSIGNED,
                user_assigned_identities=list(args.machine.identity_ids),
            ),
            virtual_machine_profile=_profile(args),
            tags=dict(args.machine.tags),
            opts=self.child(pulumi.ResourceOptions(replace_on_changes=_SET_OPTION)),
        )
        self.scale_set_id = made.id
        self.scale_set_name = made.name


def _profile(args: ScaleSetArgs) -> compute.VirtualMachineScaleSetVMProfileArgs:
    spot = args.machine.option.market == "spot"
    return compute.VirtualMachineScaleSetVMProfileArgs(
        priority=_PRIORITY[args.machine.option.market],
        eviction_policy=_EVICTED if spot else None,
        billing_profile=_billing(args.machine.option) if spot else None,
        capacity_reservation=_reservation(args.machine.option),
        os_profile=compute.VirtualMachineScaleSetOSProfileArgs(
            computer_name_prefix=args.prefix,
            admin_username=args.machine.user,
            custom_data=args.machine.custom_data,
            linux_configuration=_linux(args.machine),
        ),
        security_profile=security(args.machine.disk_set_id),
        storage_profile=compute.VirtualMachineScaleSetStorageProfileArgs(
            image_reference=image_reference(args.machine.plan.image),
            os_disk=set_disk(args.machine.plan.disk_gib, args.machine.disk_set_id),
        ),
        network_profile=compute.VirtualMachineScaleSetNetworkProfileArgs(
            network_interface_configurations=[_interface(args)]
        ),
        diagnostics_profile=_console(),
    )


def _interface(args: ScaleSetArgs) -> compute.VirtualMachineScaleSetNetworkConfigurationArgs:
    """Return the one Ethernet interface; InfiniBand needs none, and none has a public address."""
    return compute.VirtualMachineScaleSetNetworkConfigurationArgs(
        name="eth0",
        primary=True,
        enable_accelerated_networking=True,
        network_security_group=compute.SubResourceArgs(id=args.machine.security_group_id),
        ip_configurations=[
            compute.VirtualMachineScaleSetIPConfigurationArgs(
                name="private",
                primary=True,
                subnet=compute.ApiEntityReferenceArgs(id=args.machine.subnet_id),
            )
        ],
    )


class NamedMachineArgs(Args, frozen=True, kw_only=True):
    """What a machine with a name of its own is made from."""

    machine: MachineArgs
    host: str
    public_address: bool = False
    forwards: bool = False
    """Takes packets that aren't its own: a gateway's."""
    disks: tuple[pulumi.Input[str], ...] = ()
    """Ids of disks that outlive it, by their LUN."""


class NamedMachine(Component[NamedMachineArgs]):
    """A login or controller machine: never replaced because a pool changes."""

    kind = "azure:NamedMachine"
    machine_id: pulumi.Output[str]
    machine_name: pulumi.Output[str]
    private_address: pulumi.Output[str]
    public_address: pulumi.Output[str]
    """"" where it has none."""

    def build(self, args: NamedMachineArgs) -> None:
        """Make the address where it has one, the interface and the machine."""
        address = self._address(args) if args.public_address else None
        interface = self._interface(args, address)
        spot = args.machine.option.market == "spot"
        machine = compute.VirtualMachine(
            args.machine.names(args.host),
            resource_group_name=args.machine.resource_group,
            location=args.machine.region,
            zones=[args.machine.option.zone] if args.machine.option.zone else None,
            hardware_profile=compute.HardwareProfileArgs(vm_size=args.machine.plan.machine),
            priority=_PRIORITY[args.machine.option.market],
            eviction_policy=_EVICTED if spot else None,
            billing_profile=_billing(args.machine.option) if spot else None,
            capacity_reservation=_reservation(args.machine.option),
            proximity_placement_group=_group(args.machine.plan.proximity_group),
            identity=compute.VirtualMachineIdentityArgs(
                type=compute.ResourceIdentityType.USER_ASSIGNED,
                user_assigned_identities=list(args.machine.identity_ids),
            ),
            os_profile=compute.OSProfileArgs(
                computer_name=args.host,
                admin_username=args.machine.user,
                custom_data=args.machine.custom_data,
                linux_configuration=_linux(args.machine),
            ),
            security_profile=security(args.machine.disk_set_id),
            storage_profile=compute.StorageProfileArgs(
                image_reference=image_reference(args.machine.plan.image),
                os_disk=boot_disk(args.machine.plan.disk_gib, args.machine.disk_set_id),
                data_disks=data_disks(args.disks),
            ),
            network_profile=compute.NetworkProfileArgs(
                network_interfaces=[
                    compute.NetworkInterfaceReferenceArgs(id=interface.id, primary=True)
                ]
            ),
            diagnostics_profile=_console(),
            tags=dict(args.machine.tags),
            # What is read at first boot only would replace a machine that runs the scheduler.
            opts=self.child(
                pulumi.ResourceOptions(
                    ignore_changes=["osProfile", "storageProfile.imageReference"],
                    replace_on_changes=_MACHINE_OPTION,
                    # The interface stays, and only one machine has it at a time.
                    delete_before_replace=True,
                )
            ),
        )
        self.machine_id = machine.id
        self.machine_name = machine.name
        self.private_address = interface.ip_configurations.apply(
            lambda parts: (parts[0].private_ip_address or "") if parts else ""
        )
        self.public_address = (
            pulumi.Output.from_input("")
            if address is None
            else address.ip_address.apply(lambda found: found or "")
        )

    def _address(self, args: NamedMachineArgs) -> network.PublicIPAddress:
        return network.PublicIPAddress(
            args.machine.names(args.host),
            resource_group_name=args.machine.resource_group,
            location=args.machine.region,
            sku=network.PublicIPAddressSkuArgs(name="Standard"),
            public_ip_allocation_method="Static",
            zones=[args.machine.option.zone] if args.machine.option.zone else None,
            opts=self.child(),
        )

    def _interface(
        self, args: NamedMachineArgs, address: network.PublicIPAddress | None
    ) -> network.NetworkInterface:
        public = None if address is None else network.PublicIPAddressArgs(id=address.id)
        return network.NetworkInterface(
            args.machine.names(args.host),
            resource_group_name=args.machine.resource_group,
            location=args.machine.region,
            enable_accelerated_networking=True,
            enable_ip_forwarding=args.forwards or None,
            network_security_group=network.NetworkSecurityGroupArgs(
                id=args.machine.security_group_id
            ),
            ip_configurations=[
                network.NetworkInterfaceIPConfigurationArgs(
                    name="private",
                    primary=True,
                    private_ip_allocation_method="Dynamic",
                    subnet=network.SubnetArgs(id=args.machine.subnet_id),
                    public_ip_address=public,
                )
            ],
            opts=self.child(),
        )


def _linux(args: MachineArgs) -> compute.LinuxConfigurationArgs:
    key = compute.SshPublicKeyArgs(
        path=f"/home/{args.user}/.ssh/authorized_keys", key_data=args.public_key
    )
    return compute.LinuxConfigurationArgs(
        disable_password_authentication=True,
        provision_vm_agent=True,
        ssh=compute.SshConfigurationArgs(public_keys=[key]),
    )


def _billing(option: OfferPlan) -> compute.BillingProfileArgs:
    """Return the price limit of spot machines; -1 means "up to the on-demand price" to Azure."""
    most = -1.0 if option.max_usd_per_hour is None else option.max_usd_per_hour
    return compute.BillingProfileArgs(max_price=most)


def _reservation(option: OfferPlan) -> compute.CapacityReservationProfileArgs | None:
    if not option.reservation:
        return None
    group = compute.SubResourceArgs(id=option.reservation)
    return compute.CapacityReservationProfileArgs(capacity_reservation_group=group)


def _group(proximity_group: str) -> compute.SubResourceArgs | None:
    return compute.SubResourceArgs(id=proximity_group) if proximity_group else None


def _console() -> compute.DiagnosticsProfileArgs:
    """Return the serial console, kept by Azure itself."""
    return compute.DiagnosticsProfileArgs(
        boot_diagnostics=compute.BootDiagnosticsArgs(enabled=True)
    )
