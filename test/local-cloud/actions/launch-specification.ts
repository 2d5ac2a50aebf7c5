import type { Image } from "../catalogue/images.ts";
import { instanceTypes, type InstanceType } from "../catalogue/instance-types.ts";
import { Ec2Error } from "../endpoint/ec2-error.ts";
import type { ParameterDeclaration, Parameters } from "../endpoint/parameters.ts";
import type { LaunchSpecification, MetadataOptions, Volume } from "../state/instance.ts";
import type { Region } from "../state/region.ts";
import { imageById } from "./describe-images.ts";
import { readPlace } from "./launch-place.ts";
import { readTagSpecifications, tagSpecificationParameters } from "./tags.ts";

export const launchParameters: ParameterDeclaration = {
  ImageId: "text",
  InstanceType: "text",
  KeyName: "text",
  UserData: "text",
  ClientToken: "text",
  InstanceInitiatedShutdownBehavior: "text",
  SubnetId: "text",
  "SecurityGroupId.N": "text",
  "Placement.AvailabilityZone": "text",
  "NetworkInterface.N.DeviceIndex": "integer",
  "NetworkInterface.N.SubnetId": "text",
  "NetworkInterface.N.AssociatePublicIpAddress": "boolean",
  "NetworkInterface.N.DeleteOnTermination": "boolean",
  "NetworkInterface.N.Description": "text",
  "NetworkInterface.N.SecurityGroupId.N": "text",
  "BlockDeviceMapping.N.DeviceName": "text",
  "BlockDeviceMapping.N.Ebs.VolumeSize": "integer",
  "BlockDeviceMapping.N.Ebs.VolumeType": "text",
  "BlockDeviceMapping.N.Ebs.Encrypted": "boolean",
  "BlockDeviceMapping.N.Ebs.DeleteOnTermination": "boolean",
  "MetadataOptions.HttpTokens": "text",
  "MetadataOptions.HttpPutResponseHopLimit": "integer",
  "MetadataOptions.HttpEndpoint": "text",
  "MetadataOptions.InstanceMetadataTags": "text",
  ...tagSpecificationParameters,
};

const volumeTypes = ["gp2", "gp3", "io1", "io2", "st1", "sc1", "standard"];
const maximumUserDataBytes = 16 * 1024;
const maximumTokenLength = 64;

/** Parses and checks a RunInstances request, except for limits and capacity. */
export function readLaunchSpecification(
  parameters: Parameters,
  region: Region,
): LaunchSpecification {
  const image = availableImage(region, parameters.requiredText("ImageId"));
  const type = instanceTypeNamed(parameters.text("InstanceType") ?? "m1.small");
  checkFit(image, type);
  refuseKeyPair(parameters.text("KeyName"));
  const tags = readTagSpecifications(parameters, ["instance", "volume"]);
  const place = readPlace(parameters, region);
  return {
    image,
    type,
    ...place,
    userData: readUserData(parameters.text("UserData")),
    clientToken: readClientToken(parameters),
    shutdownBehavior:
      oneOf(parameters, "InstanceInitiatedShutdownBehavior", ["stop", "terminate"]) ?? "stop",
    metadataOptions: readMetadataOptions(parameters, image),
    volumes: readVolumes(parameters, image),
    instanceTags: tags.get("instance") ?? new Map(),
    volumeTags: tags.get("volume") ?? new Map(),
  };
}

function availableImage(region: Region, id: string): Image {
  const image = imageById(region, id);
  if (image.state === "available") return image;
  throw new Ec2Error("InvalidAMIID.Unavailable", `The image ID '[${id}]' is not available`);
}

function instanceTypeNamed(name: string): InstanceType {
  const found = instanceTypes.find((type) => type.name === name);
  if (found === undefined) throw invalid(`Invalid value '${name}' for InstanceType.`);
  return found;
}

function checkFit(image: Image, type: InstanceType): void {
  if (image.architecture !== type.architecture) {
    throw invalid(
      `The architecture '${type.architecture}' of the specified instance type does not match the architecture '${image.architecture}' of the specified AMI.`,
    );
  }
  if (image.virtualizationType !== "hvm") {
    throw new Ec2Error(
      "InvalidParameterCombination",
      "Non-Windows instances with a virtualization type of 'paravirtual' are currently not supported for this instance type.",
    );
  }
}

function refuseKeyPair(name: string | undefined): void {
  if (name === undefined) return;
  throw new Ec2Error("InvalidKeyPair.NotFound", `The key pair '${name}' does not exist`);
}

function readClientToken(parameters: Parameters): string | undefined {
  const token = parameters.text("ClientToken");
  if (token !== undefined && !/^[\x20-\x7e]*$/.test(token))
    throw invalid("ClientToken must be ASCII.");
  if (token !== undefined && token.length > maximumTokenLength) {
    throw invalid(`ClientToken exceeds the maximum length of ${maximumTokenLength} characters`);
  }
  return token;
}

function readUserData(encoded: string | undefined): Uint8Array {
  if (encoded === undefined) return new Uint8Array();
  if (!/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(encoded)) {
    throw new Ec2Error("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.");
  }
  const bytes = Buffer.from(encoded, "base64");
  if (bytes.length > maximumUserDataBytes)
    throw invalid(`User data is limited to ${maximumUserDataBytes} bytes`);
  return bytes;
}

/** The image's attributes change the defaults of a request. */
function readMetadataOptions(parameters: Parameters, image: Image): MetadataOptions {
  const isNew = image.imdsSupport === "v2.0";
  return {
    httpTokens:
      oneOf(parameters, "MetadataOptions.HttpTokens", ["optional", "required"]) ??
      (isNew ? "required" : "optional"),
    httpPutResponseHopLimit:
      readHopLimit(parameters, "MetadataOptions.HttpPutResponseHopLimit") ?? (isNew ? 2 : 1),
    httpEndpoint:
      oneOf(parameters, "MetadataOptions.HttpEndpoint", ["enabled", "disabled"]) ?? "enabled",
    instanceMetadataTags:
      oneOf(parameters, "MetadataOptions.InstanceMetadataTags", ["enabled", "disabled"]) ??
      "disabled",
  };
}

export function readHopLimit(parameters: Parameters, name: string): number | undefined {
  const hopLimit = parameters.integer(name);
  if (hopLimit === undefined || (hopLimit >= 1 && hopLimit <= 64)) return hopLimit;
  throw invalid(
    `Invalid value '${hopLimit}' for HttpPutResponseHopLimit. It must be between 1 and 64.`,
  );
}

/** Returns the image's volumes with the request's changes, and any further ones. */
function readVolumes(parameters: Parameters, image: Image): readonly Omit<Volume, "id">[] {
  const asked = parameters.list("BlockDeviceMapping").map((mapping) => readVolume(mapping, image));
  const names = asked.map((volume) => volume.deviceName);
  if (new Set(names).size !== names.length) {
    throw new Ec2Error(
      "InvalidBlockDeviceMapping",
      "The device is used in more than one block-device mapping",
    );
  }
  const own = imageVolumes(image).filter(({ deviceName }) => !names.includes(deviceName));
  return [...own, ...asked];
}

const imageVolumes = (image: Image): readonly Omit<Volume, "id">[] => {
  const root = {
    deviceName: image.rootDeviceName,
    sizeGiB: image.rootSizeGiB,
    deleteOnTermination: true,
  };
  return [root, ...image.furtherDevices].flatMap(
    ({ deviceName, sizeGiB, deleteOnTermination = false }) =>
      sizeGiB === undefined
        ? []
        : [{ deviceName, sizeGiB, type: "gp2", encrypted: false, deleteOnTermination }],
  );
};

function readVolume(mapping: Parameters, image: Image): Omit<Volume, "id"> {
  const deviceName = mapping.requiredText("DeviceName");
  const own = imageVolumes(image).find((volume) => volume.deviceName === deviceName);
  const sizeGiB = mapping.integer("Ebs.VolumeSize") ?? own?.sizeGiB ?? 0;
  if (own !== undefined && sizeGiB < own.sizeGiB) {
    throw new Ec2Error(
      "InvalidBlockDeviceMapping",
      `Volume of size ${sizeGiB}GB is smaller than snapshot of the image, expect size >= ${own.sizeGiB}GB`,
    );
  }
  if (sizeGiB < 1 || sizeGiB > 16_384) throw invalid(`Volume size ${sizeGiB} is out of range`);
  return {
    deviceName,
    sizeGiB,
    type: oneOf(mapping, "Ebs.VolumeType", volumeTypes) ?? "gp2",
    encrypted: mapping.boolean("Ebs.Encrypted") ?? false,
    deleteOnTermination:
      mapping.boolean("Ebs.DeleteOnTermination") ?? own?.deleteOnTermination ?? false,
  };
}

export function oneOf<Value extends string>(
  parameters: Parameters,
  name: string,
  values: readonly Value[],
): Value | undefined {
  const text = parameters.text(name);
  if (text === undefined) return undefined;
  const found = values.find((value) => value === text);
  if (found === undefined)
    throw invalid(
      `Value (${text}) for parameter ${name} is invalid. Valid values: ${values.join(", ")}.`,
    );
  return found;
}

function invalid(message: string): Ec2Error {
  return new Ec2Error("InvalidParameterValue", message);
}
