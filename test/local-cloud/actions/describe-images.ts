import type { Image } from "../catalogue/images.ts";
import { fixedId } from "../catalogue/resource-id.ts";
import { Ec2Error } from "../endpoint/ec2-error.ts";
import { applyFilters, filterParameters } from "../endpoint/filters.ts";
import { pageOf, pagingParameters } from "../endpoint/paging.ts";
import type { Region } from "../state/region.ts";
import type { Action } from "./action.ts";

export const describeImages: Action = {
  name: "DescribeImages",
  parameters: {
    ...filterParameters,
    ...pagingParameters,
    "ImageId.N": "text",
    "Owner.N": "text",
    "ExecutableBy.N": "text",
    IncludeDeprecated: "boolean",
    DryRun: "boolean",
  },
  required: [],
  run: ({ parameters, region, accountId, passDryRun }) => {
    const ids = parameters.texts("ImageId");
    const owners = parameters.texts("Owner").map((owner) => (owner === "self" ? accountId : owner));
    const asked = ids.length === 0 ? region.images : ids.map((id) => imageById(region, id));
    // Only its owner sees a deprecated image, unless the request gives its id or asks for deprecated images.
    const showsDeprecated = ids.length > 0 || parameters.boolean("IncludeDeprecated") === true;
    const shown = asked.filter(
      (image) =>
        (owners.length === 0 || owners.includes(image.owner)) &&
        (showsDeprecated || !image.deprecated),
    );
    const filtered = applyFilters(shown, parameters, imageFields, () => new Map());
    const page = pageOf(filtered, parameters, { minimum: 1, maximum: 1000 });
    passDryRun();
    return { imagesSet: page.items.map(imageXml), nextToken: page.nextToken };
  },
};

/** Returns the image with this id. Throws EC2's error if the id is malformed or unknown. */
export function imageById(region: Region, id: string): Image {
  if (!/^ami-(?:[0-9a-f]{8}|[0-9a-f]{17})$/.test(id)) {
    throw new Ec2Error("InvalidAMIID.Malformed", `Invalid id: "${id}" (expecting "ami-...")`);
  }
  const found = region.images.find((image) => image.id === id);
  if (found === undefined)
    throw new Ec2Error("InvalidAMIID.NotFound", `The image id '[${id}]' does not exist`);
  return found;
}

const imageFields = {
  name: (image: Image) => [image.name],
  "image-id": (image: Image) => [image.id],
  "owner-id": (image: Image) => [image.owner],
  architecture: (image: Image) => [image.architecture],
  "virtualization-type": (image: Image) => [image.virtualizationType],
  "root-device-type": () => ["ebs"],
  "root-device-name": (image: Image) => [image.rootDeviceName],
  "creation-date": (image: Image) => [image.creationDate],
  state: (image: Image) => [image.state],
  "is-public": () => ["true"],
  "image-type": () => ["machine"],
  hypervisor: () => ["xen"],
};

function imageXml(image: Image) {
  return {
    imageId: image.id,
    imageLocation: `${image.owner}/${image.name}`,
    imageState: image.state,
    imageOwnerId: image.owner,
    isPublic: true,
    architecture: image.architecture,
    imageType: "machine",
    name: image.name,
    description: image.distribution,
    rootDeviceType: "ebs",
    rootDeviceName: image.rootDeviceName,
    blockDeviceMapping: [
      {
        deviceName: image.rootDeviceName,
        ebs: {
          snapshotId: fixedId("snap", image.id),
          volumeSize: image.rootSizeGiB,
          volumeType: "gp2",
          deleteOnTermination: true,
          encrypted: false,
        },
      },
      ...image.furtherDevices.map(({ deviceName, sizeGiB, deleteOnTermination }) =>
        sizeGiB === undefined
          ? { deviceName, virtualName: "ephemeral0" }
          : {
              deviceName,
              ebs: {
                snapshotId: fixedId("snap", image.id + deviceName),
                volumeSize: sizeGiB,
                volumeType: "gp2",
                deleteOnTermination,
                encrypted: false,
              },
            },
      ),
    ],
    virtualizationType: image.virtualizationType,
    hypervisor: "xen",
    enaSupport: true,
    imdsSupport: image.imdsSupport,
    creationDate: image.creationDate,
    deprecationTime: image.deprecated ? "2024-07-01T00:00:00.000Z" : undefined,
  };
}
