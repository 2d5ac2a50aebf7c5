import type { Image, InstanceTypeInfo } from "@aws-sdk/client-ec2";
import { ClusterError, hasErrorId, messageOf } from "../../../errors.ts";
import { optionName } from "../../../references.ts";
import type { Work } from "../../../system/runtime.ts";
import { type CloudApi, collectPages } from "../api/api.ts";

/** What decides whether an image boots on an instance type, in the API's words. */
export type ImageTraits = Pick<
  Image,
  | "Architecture"
  | "VirtualizationType"
  | "RootDeviceType"
  | "BootMode"
  | "EnaSupport"
  | "TpmSupport"
>;

/** Undefined if the region doesn't have the type. */
export async function findInstanceType(
  api: CloudApi,
  instanceType: string,
  signal: AbortSignal,
): Promise<InstanceTypeInfo | undefined> {
  // A filter, because a name that the region doesn't know would be an error.
  const query = { Filters: [{ Name: "instance-type", Values: [instanceType] }] };
  const types = await collectPages(
    api,
    ["DescribeInstanceTypes", query],
    ({ InstanceTypes }) => InstanceTypes,
    signal,
  );
  return types[0];
}

/**
 * Throws `bad-usage` if the region doesn't have the type. Undefined if the account may not ask:
 * then only the launch can tell.
 */
export async function describeInstanceType(
  { progress, signal }: Pick<Work, "progress" | "signal">,
  api: CloudApi,
  instanceType: string,
): Promise<InstanceTypeInfo | undefined> {
  try {
    const type = await findInstanceType(api, instanceType, signal);
    if (type !== undefined) return type;
  } catch (error) {
    if (!hasErrorId(error, "not-permitted")) throw error;
    progress.note(`Not checked whether the image fits ${instanceType}: ${messageOf(error)}`);
    return undefined;
  }
  throw notOffered(api, instanceType);
}

export const notOffered = (
  { region }: Pick<CloudApi, "region">,
  instanceType: string,
): ClusterError =>
  new ClusterError(
    "bad-usage",
    `${optionName("instanceType")}: region ${region} does not offer ${instanceType}.`,
    {
      hint: `Choose an instance type that it offers, such as m6i.large, or another ${optionName("region")}.`,
      facts: { instanceType, region },
    },
  );

/** Throws `bad-usage` if the image can't boot on the type. The API itself would refuse it only at the launch. */
export function assertFits(
  image: { readonly id: string; readonly name: string; readonly traits: ImageTraits },
  type: InstanceTypeInfo | undefined,
): void {
  const problem = type && misfit(image.traits, type);
  if (problem === undefined) return;
  const [needs, has] = problem;
  const name = type?.InstanceType ?? "";
  throw new ClusterError(
    "bad-usage",
    `${optionName("instanceType")}: image ${image.id} (${image.name}) ${needs}, but ${name} ${has}.`,
    {
      hint: `Choose another ${optionName("instanceType")}, such as m6i.large for images of x86_64, or pass an image that fits with ${optionName("image")} and ${optionName("sshUser")}.`,
      facts: { image: image.id, instanceType: name, ...image.traits },
    },
  );
}

/** What the image needs, and what the type has instead. What the API doesn't say is left to the launch. */
function misfit(image: ImageTraits, type: InstanceTypeInfo): readonly [string, string] | undefined {
  const lists: readonly (readonly [string, string | undefined, readonly string[] | undefined])[] = [
    ["processors of", image.Architecture, type.ProcessorInfo?.SupportedArchitectures],
    ["virtualization of type", image.VirtualizationType, type.SupportedVirtualizationTypes],
    ["a root device of type", image.RootDeviceType, type.SupportedRootDeviceTypes],
    [
      "boot mode",
      image.BootMode === "uefi-preferred" ? undefined : image.BootMode,
      type.SupportedBootModes,
    ],
  ];
  for (const [what, needed, supported = []] of lists)
    if (needed !== undefined && supported.length > 0 && !supported.includes(needed))
      return [`needs ${what} ${needed}`, `has ${supported.join(", ")}`];
  if (type.NetworkInfo?.EnaSupport === "required" && image.EnaSupport !== true)
    return ["has no driver for Elastic Network Adapters", "requires one"];
  return image.TpmSupport !== undefined && type.NitroTpmSupport === "unsupported"
    ? ["needs a TPM", "has none"]
    : undefined;
}
