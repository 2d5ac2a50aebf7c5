import { Ec2Error } from "../endpoint/ec2-error.ts";
import { applyFilters, filterParameters, type Tags } from "../endpoint/filters.ts";
import { pageOf, pagingParameters } from "../endpoint/paging.ts";
import type { XmlObject } from "../endpoint/xml.ts";
import { type Instance, isAlive, type Volume } from "../state/instance.ts";
import type { Action, ActionRequest } from "./action.ts";
import { tagsXml } from "./tags.ts";

/** A volume, and the instance that it was launched with. */
interface LaunchedVolume {
  readonly volume: Volume;
  readonly instance: Instance;
}

/** The caller's volumes, also those that have outlived their instances. */
export const volumesOf = ({ accountId, region, cloud }: ActionRequest): readonly LaunchedVolume[] =>
  cloud.lifecycle
    .all()
    .filter((instance) => instance.accountId === accountId && instance.region === region.name)
    .flatMap((instance) =>
      instance.volumes
        .filter(({ deleteOnTermination }) => isAlive(instance) || !deleteOnTermination)
        .map((volume) => ({ volume, instance })),
    );

export const describeVolumes: Action = {
  name: "DescribeVolumes",
  parameters: { ...filterParameters, ...pagingParameters, "VolumeId.N": "text", DryRun: "boolean" },
  required: [],
  run: (request) => {
    const { parameters, passDryRun } = request;
    const ids = parameters.texts("VolumeId");
    const all = volumesOf(request);
    const unknown = ids.find((id) => !all.some(({ volume }) => volume.id === id));
    if (unknown !== undefined)
      throw new Ec2Error("InvalidVolume.NotFound", `The volume '${unknown}' does not exist.`);
    const asked = all.filter(({ volume }) => ids.length === 0 || ids.includes(volume.id));
    const filtered = applyFilters(asked, parameters, volumeFields, tagsOf);
    const page = pageOf(filtered, parameters, { minimum: 5, maximum: 500 });
    passDryRun();
    return { volumeSet: page.items.map(volumeXml), nextToken: page.nextToken };
  },
};

const tagsOf = ({ volume, instance }: LaunchedVolume): Tags =>
  instance.volumeTags.get(volume.id) ?? new Map();

const statusOf = ({ instance }: LaunchedVolume): string =>
  isAlive(instance) ? "in-use" : "available";

const ifAttached =
  (value: (item: LaunchedVolume) => string) =>
  (item: LaunchedVolume): readonly string[] =>
    isAlive(item.instance) ? [value(item)] : [];

const volumeFields = {
  "volume-id": ({ volume }: LaunchedVolume) => [volume.id],
  status: (item: LaunchedVolume) => [statusOf(item)],
  size: ({ volume }: LaunchedVolume) => [String(volume.sizeGiB)],
  encrypted: ({ volume }: LaunchedVolume) => [String(volume.encrypted)],
  "volume-type": ({ volume }: LaunchedVolume) => [volume.type],
  "availability-zone": ({ instance }: LaunchedVolume) => [instance.launch.subnet.zone],
  "attachment.instance-id": ifAttached(({ instance }) => instance.id),
  "attachment.device": ifAttached(({ volume }) => volume.deviceName),
  "attachment.status": ifAttached(() => "attached"),
  "attachment.delete-on-termination": ifAttached(({ volume }) =>
    String(volume.deleteOnTermination),
  ),
};

function volumeXml(item: LaunchedVolume): XmlObject {
  const { volume, instance } = item;
  return {
    volumeId: volume.id,
    size: volume.sizeGiB,
    snapshotId: "",
    availabilityZone: instance.launch.subnet.zone,
    status: statusOf(item),
    createTime: instance.launchTime,
    volumeType: volume.type,
    encrypted: volume.encrypted,
    multiAttachEnabled: false,
    attachmentSet: isAlive(instance)
      ? [
          {
            volumeId: volume.id,
            instanceId: instance.id,
            device: volume.deviceName,
            status: "attached",
            attachTime: instance.launchTime,
            deleteOnTermination: volume.deleteOnTermination,
          },
        ]
      : [],
    tagSet: tagsXml(tagsOf(item)),
  };
}
