import { newId } from "../catalogue/resource-id.ts";
import { Ec2Error } from "../endpoint/ec2-error.ts";
import type { Parameters } from "../endpoint/parameters.ts";
import type { XmlObject } from "../endpoint/xml.ts";
import type { Instance, LaunchSpecification, StateReason } from "../state/instance.ts";
import type { Action, ActionRequest } from "./action.ts";
import { reservationXml } from "./instance-xml.ts";
import { launchableCount, type AskedCount } from "./launch-limits.ts";
import { checkTagPolicy } from "./tags.ts";
import { launchParameters, readLaunchSpecification } from "./launch-specification.ts";

export const runInstances: Action = {
  name: "RunInstances",
  parameters: { ...launchParameters, MinCount: "integer", MaxCount: "integer", DryRun: "boolean" },
  required: ["ImageId", "MinCount", "MaxCount"],
  run: (request) => {
    const { parameters, region, cloud, passDryRun } = request;
    const fingerprint = fingerprintOf(parameters);
    const former = formerLaunch(request, fingerprint);
    if (former !== undefined) return former;
    const asked = readCount(parameters);
    const launch = readLaunchSpecification(parameters, region);
    checkTagPolicy(launch.instanceTags, cloud.behaviour.current);
    const count = launchableCount(launch, asked, region, cloud.behaviour.current);
    if (cloud.addresses.free(launch.subnet.cidr) < count) {
      throw new Ec2Error(
        "InsufficientFreeAddressesInSubnet",
        `There are not enough free addresses in subnet '${launch.subnet.id}' to satisfy the requested number of instances.`,
      );
    }
    passDryRun();
    const reservationId = newId("r");
    if (launch.clientToken !== undefined)
      region.launches.set(launch.clientToken, { fingerprint, reservationId });
    const instances = Array.from({ length: count }, (_, index) =>
      newInstance(request, launch, reservationId, index),
    );
    for (const instance of instances) {
      region.instances.set(instance.id, instance);
      cloud.lifecycle.launch(instance, scriptedFailure(request));
    }
    return reservationXml(instances, region, { tagsOf: ({ tags }) => tags, hasGroups: true });
  },
};

/** Returns the instances that an identical request with the same client token has launched. Rejects a different request with that token. */
function formerLaunch(
  { parameters, region }: ActionRequest,
  fingerprint: string,
): XmlObject | undefined {
  const launched = region.launches.get(parameters.text("ClientToken") ?? "");
  if (launched === undefined) return undefined;
  if (launched.fingerprint !== fingerprint) {
    throw new Ec2Error(
      "IdempotentParameterMismatch",
      "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).",
    );
  }
  const instances = [...region.instances.values()].filter(
    (instance) => instance.reservationId === launched.reservationId,
  );
  return instances.length === 0
    ? undefined
    : reservationXml(instances, region, { tagsOf: ({ tags }) => tags, hasGroups: true });
}

function fingerprintOf(parameters: Parameters): string {
  return JSON.stringify(
    parameters
      .entries()
      .filter(([name]) => name !== "DryRun")
      .toSorted(([left], [right]) => left.localeCompare(right)),
  );
}

function readCount(parameters: Parameters): AskedCount {
  const minimum = parameters.requiredInteger("MinCount");
  const maximum = parameters.requiredInteger("MaxCount");
  if (minimum < 1)
    throw new Ec2Error(
      "InvalidParameterValue",
      `Value (${minimum}) for parameter minCount is invalid. It must be at least 1.`,
    );
  if (maximum < minimum) {
    throw new Ec2Error(
      "InvalidParameterCombination",
      `minCount (${minimum}) may not be greater than maxCount (${maximum})`,
    );
  }
  return { minimum, maximum };
}

function newInstance(
  { region, cloud, accountId }: ActionRequest,
  launch: LaunchSpecification,
  reservationId: string,
  launchIndex: number,
): Instance {
  const volumes = launch.volumes.map((volume) => ({ ...volume, id: newId("vol") }));
  const { instancesVisibleAfterMs, tagsVisibleAfterMs } = cloud.behaviour.current;
  return {
    id: newId("i"),
    accountId,
    region: region.name,
    reservationId,
    launchIndex,
    launch,
    metadataOptions: launch.metadataOptions,
    launchTime: cloud.clock.now(),
    visibleAt: Date.now() + instancesVisibleAfterMs,
    tagsVisibleAt: Date.now() + tagsVisibleAfterMs,
    privateAddress: cloud.addresses.take(launch.subnet.cidr),
    volumes,
    volumeTags: new Map(volumes.map(({ id }) => [id, new Map(launch.volumeTags)])),
    tags: new Map(launch.instanceTags),
    publicAddress: undefined,
    state: "pending",
    stateReason: { code: "pending", message: "pending" },
    transitionReason: "",
    terminatedAt: undefined,
  };
}

/** Returns the reason why this machine must end in `terminated`, if a test has scripted one. */
function scriptedFailure({ cloud, region, parameters }: ActionRequest): StateReason | undefined {
  const occasion = {
    action: "RunInstances",
    region: region.name,
    fields: new Map(parameters.entries()),
  };
  const fault = cloud.faults.take("launch", occasion);
  if (fault === undefined) return undefined;
  const code = fault.code ?? "Server.InternalError";
  return { code, message: fault.message ?? `${code}: Internal error on launch` };
}
