"""The calls by which AWS' file systems are made: FSx for Lustre and OpenZFS, and EFS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .aws_parameters import Request, pascal, some, tags

Json = dict[str, Any]  # a request's JSON


def _lustre(name: str, inputs: Json) -> list[Request]:
    del name
    lustre = some(
        inputs, DeploymentType="deploymentType", CopyTagsToBackups="copyTagsToBackups",
        PerUnitStorageThroughput="perUnitStorageThroughput", EfaEnabled="efaEnabled",
    )  # fmt: skip
    if "metadataConfiguration" in inputs:
        lustre["MetadataConfiguration"] = pascal(inputs["metadataConfiguration"])
    given = {
        "FileSystemType": "LUSTRE", "SubnetIds": [inputs["subnetIds"]],
        "LustreConfiguration": lustre, "Tags": tags(inputs),
        **some(
            inputs, StorageCapacity="storageCapacity", StorageType="storageType",
            FileSystemTypeVersion="fileSystemTypeVersion", SecurityGroupIds="securityGroupIds",
            KmsKeyId="kmsKeyId",
        ),
    }  # fmt: skip
    return [Request("fsx", "create_file_system", given)]


def _openzfs(name: str, inputs: Json) -> list[Request]:
    del name
    root = dict(inputs["rootVolumeConfiguration"])
    exports = [
        {"ClientConfigurations": [pascal(c) for c in root["nfsExports"]["clientConfigurations"]]}
    ]
    zfs = {
        "RootVolumeConfiguration": {
            "DataCompressionType": root["dataCompressionType"], "NfsExports": exports,
        },
        **some(
            inputs, DeploymentType="deploymentType", ThroughputCapacity="throughputCapacity",
            CopyTagsToBackups="copyTagsToBackups", CopyTagsToVolumes="copyTagsToVolumes",
        ),
    }  # fmt: skip
    given = {
        "FileSystemType": "OPENZFS", "SubnetIds": [inputs["subnetIds"]],
        "OpenZFSConfiguration": zfs, "Tags": tags(inputs),
        **some(
            inputs, StorageCapacity="storageCapacity", StorageType="storageType",
            SecurityGroupIds="securityGroupIds", KmsKeyId="kmsKeyId",
        ),
    }  # fmt: skip
    return [Request("fsx", "create_file_system", given)]


def _efs(name: str, inputs: Json) -> list[Request]:
    given = {
        "CreationToken": name[:64], "Tags": tags(inputs),
        **some(
            inputs, Encrypted="encrypted", KmsKeyId="kmsKeyId", PerformanceMode="performanceMode",
            ThroughputMode="throughputMode",
            ProvisionedThroughputInMibps="provisionedThroughputInMibps",
        ),
    }  # fmt: skip
    return [Request("efs", "create_file_system", given)]


def _mount_target(name: str, inputs: Json) -> list[Request]:
    del name
    given = some(
        inputs, FileSystemId="fileSystemId", SubnetId="subnetId", SecurityGroups="securityGroups"
    )
    return [Request("efs", "create_mount_target", given)]


def _association(name: str, inputs: Json) -> list[Request]:
    del name
    given = some(
        inputs, FileSystemId="fileSystemId", FileSystemPath="fileSystemPath",
        DataRepositoryPath="dataRepositoryPath",
        BatchImportMetaDataOnCreate="batchImportMetaDataOnCreate",
    )  # fmt: skip
    given |= {"S3": pascal(inputs["s3"]), "Tags": tags(inputs)}
    return [Request("fsx", "create_data_repository_association", given)]


TYPES: dict[str, Callable[[str, Json], list[Request]]] = {
    "aws:efs/fileSystem:FileSystem": _efs,
    "aws:efs/mountTarget:MountTarget": _mount_target,
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": _association,
    "aws:fsx/lustreFileSystem:LustreFileSystem": _lustre,
    "aws:fsx/openZfsFileSystem:OpenZfsFileSystem": _openzfs,
}
"""Type -> what builds its calls."""
