import { BlockList, isIPv4 } from "node:net";
import type { Instance } from "@aws-sdk/client-ec2";
import { ClusterError, hasErrorId, messageOf } from "../../../errors.ts";
import { optionName } from "../../../references.ts";
import { type ClusterRecord, nodeReference } from "../../../model/cluster-record.ts";
import { type Clock, type Progress, type Work, passedMs } from "../../../system/runtime.ts";
import { waits } from "../../../system/waits.ts";
import { machineFailed } from "../../shared/machine-errors.ts";
import { type CloudApi, describeInstances } from "../api/api.ts";
import { isPastDeadline } from "../lifetime.ts";
import { type Machine, readMachines } from "../read-machines.ts";
import { type RegionFolder, clustersOf, toNode } from "../records.ts";
import type { LaunchImage } from "./images.ts";
import { checkAddress, clusterExists } from "./network.ts";

const endedHint =
  "The cause may be a limit of the account, an encryption key or the image; see the cloud's message above.";
const poweredOffHint =
  "It powered itself off, as every machine does at its deadline. Its clock may be wrong, or its image may shut it down; its console output is among the saved logs.";

const addressLimitMs = 120_000;

export interface Watching {
  readonly clusterId: string;
  readonly creationId: string;
  readonly machineIds: readonly string[];
  readonly regionFolder: RegionFolder;
  /** The clock time at which the API had confirmed all launches. */
  readonly launchedMs: number;
  /**
   * Since which clock time a machine has been running without a public address, by its id. Kept up
   * to date by each look.
   */
  readonly withoutAddress: Map<string, number>;
}

/**
 * Looks at all machines of a creation with one request. Throws `machine-failed` if one of them ended or gets no public
 * address, and `cluster-exists` if an older creation of the same id shows up. A machine whose tags aren't complete yet,
 * as in the first moments, counts as not seen. Returns `undefined` if no machine is visible.
 */
export async function lookAtMachines(
  api: CloudApi,
  watching: Watching,
  clock: Clock,
  signal: AbortSignal,
): Promise<ClusterRecord | undefined> {
  const instances = await describeInstances(api, { clusterId: watching.clusterId }, signal);
  const ownIds = new Set(watching.machineIds);
  const isOwn = ({ InstanceId = "" }: Instance): boolean => ownIds.has(InstanceId);
  const launched = instances.filter(isOwn);
  assertOldest(
    launched,
    instances.filter((instance) => !isOwn(instance)),
    watching,
    api,
  );
  // Read separately, so that other machines' claims don't affect them.
  const own = readMachines(launched).machines.filter(
    ({ creationId }) => creationId === watching.creationId,
  );
  assertPresent(own, watching, passedMs(clock) - watching.launchedMs);
  assertAddresses(own, watching.withoutAddress, passedMs(clock));
  return clustersOf(own, watching.regionFolder)[0];
}

/**
 * Two networks can each hold the same id at the same moment. Then the later creation yields. Own machines are known by
 * their ids, since their tags may not be complete yet; while none is visible, nothing can be decided.
 */
function assertOldest(
  launched: readonly Instance[],
  others: readonly Instance[],
  watching: Watching,
  api: CloudApi,
): void {
  if (launched.length === 0) return;
  const { machines } = readMachines(others);
  const own = Math.min(...launched.map(({ LaunchTime }) => LaunchTime?.getTime() ?? Infinity));
  const launchedMs = (creation: string): number =>
    Math.min(
      ...machines
        .filter(({ creationId }) => creationId === creation)
        .map(({ launchedAt }) => launchedAt?.getTime() ?? Infinity),
    );
  const elder = machines.find((machine) => {
    const { creationId, state, expiresAt } = machine;
    if (creationId === watching.creationId || (state !== "starting" && state !== "running"))
      return false;
    // Tags alone, which others may copy, don't make a rival.
    if (!machine.isInItsGroup) return false;
    const otherMs = launchedMs(creationId);
    if (isPastDeadline({ expiresAt, launchedAt: new Date(otherMs) }, api.now())) return false;
    return otherMs < own || (otherMs === own && creationId < watching.creationId);
  });
  if (elder === undefined) return;
  const { expiresAt } = elder;
  throw clusterExists({
    clusterId: watching.clusterId,
    region: api.region,
    expiresAt,
    nowMs: api.now(),
  });
}

function assertPresent(own: readonly Machine[], watching: Watching, elapsedMs: number): void {
  const ended = own.map(toNode).find((node) => node.state === "ending" || node.state === "ended");
  if (ended !== undefined)
    throw machineFailed(ended, { output: "", hint: hintFor(ended.stateReason) });
  if (elapsedMs < waits.visibility.limitMs || own.length === watching.machineIds.length) return;
  const seen = new Set(own.map(({ id }) => id));
  const unseen = watching.machineIds.filter((id) => !seen.has(id));
  throw new ClusterError(
    "machine-failed",
    `The cloud launched ${unseen.join(", ")}, but after two minutes it still does not list it with its tags.`,
    {
      hint: "Try again.",
      facts: { machines: unseen },
    },
  );
}

const terminatedHint =
  "Somebody with access to the account, or one of its policies, terminated it. Find out who did (AWS CloudTrail records TerminateInstances), then create the cluster again.";

function hintFor(reason = ""): string {
  if (/user.?initiated/i.test(reason)) return terminatedHint;
  return /instance.?initiated.?shutdown/i.test(reason) ? poweredOffHint : endedHint;
}

/** A public address comes with the start, or a moment later, or never. */
function assertAddresses(
  own: readonly Machine[],
  withoutAddress: Map<string, number>,
  nowMs: number,
): void {
  for (const machine of own) {
    if (machine.state !== "running" || machine.publicAddress !== undefined)
      withoutAddress.delete(machine.id);
    else if (!withoutAddress.has(machine.id)) withoutAddress.set(machine.id, nowMs);
  }
  const failed = own.filter(({ id }) => nowMs - (withoutAddress.get(id) ?? nowMs) > addressLimitMs);
  if (failed.length === 0) return;
  const names = failed.map((machine) => `${nodeReference(machine)} (${machine.id})`).join(", ");
  throw new ClusterError(
    "machine-failed",
    `The cloud gave ${names} no public address in two minutes.`,
    {
      hint: `Pass a subnet that assigns public addresses with ${optionName("subnetId")}. Or the account has reached its limit of addresses.`,
      facts: { machines: failed.map(({ id }) => id) },
    },
  );
}

/** Explains that nodes don't answer because this machine's address isn't admitted; undefined if it is. */
export async function whyUnreachableText(
  work: Pick<Work, "environment" | "progress" | "signal">,
  cidrs: readonly string[],
): Promise<string | undefined> {
  const address = await checkAddress(work).catch(() => undefined);
  if (address === undefined || isAllowedAddress(address, cidrs)) return undefined;
  return `This computer's public address is now ${address}, but the cluster allows only ${cidrs.join(", ")}.`;
}

/** Whether any of the ranges (`address/bits`, IPv4 or IPv6) holds the address. */
export function isAllowedAddress(address: string, cidrs: readonly string[]): boolean {
  const admitted = new BlockList();
  for (const cidr of cidrs) {
    const [network = "", bits = ""] = cidr.split("/");
    admitted.addSubnet(network, Number(bits), family(network));
  }
  return admitted.check(address, family(address));
}

const family = (address: string): "ipv4" | "ipv6" => (isIPv4(address) ? "ipv4" : "ipv6");

/** Closes version 1 of a machine's instance metadata once nothing on the machine needs it any more. */
export type RequireMetadata2 = (
  machineId: string,
  name: string,
  signal: AbortSignal,
) => Promise<void>;

/**
 * For the machines of one creation. Warns only once about a missing permission. Sends no request for machines that were
 * launched with version 2 alone.
 */
export function metadata2Requirer(
  api: CloudApi,
  image: Pick<LaunchImage, "knowsMetadata2">,
  progress: Pick<Progress, "warn" | "detail">,
): RequireMetadata2 {
  const state = { isForbidden: false };
  return async (machineId, name, signal) => {
    if (image.knowsMetadata2 || state.isForbidden) return;
    try {
      const request = {
        InstanceId: machineId,
        HttpTokens: "required",
        HttpPutResponseHopLimit: 1,
      } as const;
      await api.call("ModifyInstanceMetadataOptions", request, signal);
      progress.detail(1, `${name}: instance metadata now requires version 2`);
    } catch (error) {
      if (!hasErrorId(error, "not-permitted")) throw error;
      if (!state.isForbidden) progress.warn(warning(error));
      state.isForbidden = true;
    }
  };
}

const warning = (error: ClusterError): string =>
  `Version 1 of the instance metadata stays open on these machines, so any program on them can read the metadata: ${messageOf(error)} Allow ec2:ModifyInstanceMetadataOptions, or choose a distribution whose images work without version 1.`;

/** Describes, for people, what a creation does with the metadata of machines from this image. */
export const metadataText = (image: Pick<LaunchImage, "knowsMetadata2">): string =>
  image.knowsMetadata2
    ? "version 2 only"
    : "version 2 only, after the first login: the image may need version 1 to find its user data";
