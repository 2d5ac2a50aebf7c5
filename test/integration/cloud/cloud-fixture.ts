import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Backend, ProvisionRequest, Surroundings } from "../../../src/backend/backend.ts";
import { createCloudBackend } from "../../../src/backend/cloud/cloud-backend.ts";
import type { CloudOptions } from "../../../src/backend/cloud/cloud-options.ts";
import type { ClusterRecord, NodeRecord } from "../../../src/model/cluster-record.ts";
import { createConnectionPool } from "../../../src/ssh/connection-pool.ts";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { createKnownHosts } from "../../../src/ssh/known-hosts.ts";
import { systemClock } from "../../../src/system/clock.ts";
import { creationDirectory, creationFiles } from "../../../src/system/creation-folder.ts";
import { makePrivateFolder, writePrivateFile } from "../../../src/system/private-file.ts";
import { silentProgress } from "../../../src/system/progress.ts";
import { stateFolder } from "../../../src/system/state-folder.ts";
import { networksOf } from "../../local-cloud/catalogue/networks.ts";
import { regions } from "../../local-cloud/catalogue/regions.ts";
import { LocalCloud } from "../../local-cloud/local-cloud.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

export const region = "us-west-2";
export const neverAborted = new AbortController().signal;

/** What a node answers that is new: its own host key, and the end of its first boot. */
const newNode = [
  { pattern: "e2e-first-contact", replaceHostKey: true },
  { pattern: "e2e-first-boot", status: 0 },
] as const;

/** A cloud, a state folder and a backend that uses both. */
export interface CloudFixture extends AsyncDisposable {
  readonly cloud: LocalCloud;
  readonly surroundings: Surroundings;
  /** Notes and warnings, and what was waited for. */
  readonly told: string[];
  open(chosen: string): Promise<Backend<CloudOptions>>;
  /** A creation of this id with its folder and key, as the facade makes them. */
  request(clusterId: string, changes: RequestChanges): Promise<TestRequest>;
}

export type RequestChanges = Partial<ProvisionRequest<CloudOptions>>;

interface TestRequest extends ProvisionRequest<CloudOptions>, AsyncDisposable {
  /** The clusters that `onFailure` was told of. */
  readonly failures: ClusterRecord[];
  readonly met: NodeRecord[];
  readonly onNode: (node: NodeRecord) => void;
}

export async function openFixture(environment: Readonly<Record<string, string | undefined>>): Promise<CloudFixture> {
  const folder = await scratchFolder();
  const cloud = await LocalCloud.start({ driver: "in-process", directory: folder.path });
  cloud.answers.replace(newNode);
  const told: string[] = [];
  const surroundings: Surroundings = {
    environment: {
      ...cloud.environment,
      HOME: folder.path,
      XDG_STATE_HOME: join(folder.path, "state"),
      AWS_EC2_METADATA_DISABLED: "true",
      ...environment,
    },
    clock: systemClock,
    progress: {
      ...silentProgress,
      note: (text) => told.push(`note: ${text}`),
      warn: (text) => told.push(`warn: ${text}`),
      waiting: (text) => told.push(`waiting: ${text}`),
      detail: (_level, text) => told.push(`detail: ${text}`),
    },
  };
  return {
    cloud,
    surroundings,
    told,
    open: async (chosen) => createCloudBackend({ region: chosen }, surroundings, neverAborted),
    request: async (clusterId, changes) => newRequest(clusterId, surroundings, changes),
    [Symbol.asyncDispose]: async () => {
      await cloud[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** A creation with its folder and key, as the facade makes them. */
export async function newRequest(
  clusterId: string,
  { environment, clock, progress }: Surroundings,
  changes: RequestChanges,
): Promise<TestRequest> {
  const creationId = randomBytes(8).toString("hex");
  const directory = creationDirectory(join(stateFolder(environment), "cloud", region), clusterId, creationId);
  const files = creationFiles(directory);
  const keys = generateKeyPair("login");
  await makePrivateFolder(directory);
  await writePrivateFile(files.privateKey, keys.privateKey);
  const connections = createConnectionPool({
    privateKeyFile: files.privateKey,
    knownHosts: createKnownHosts(files.knownHosts),
    clock,
    progress,
  });
  const failures: ClusterRecord[] = [];
  const met: NodeRecord[] = [];
  return {
    clusterId,
    creationId,
    directory,
    variant: "oss",
    distribution: "debian-12",
    counts: { master: 1, agent: 1, public_agent: 1 },
    creation: { instanceType: "m5.large", customTags: [], adminCidrs: [] },
    needsCgroups1: false,
    imagePreparation: undefined,
    openPorts: [80, 443],
    webScheme: "http",
    publicKey: keys.publicKey,
    connections,
    keepOnFailure: false,
    deadlineMs: clock.now() + 60_000,
    complete: async () => {},
    onFailure: async (cluster) => {
      failures.push(cluster);
    },
    ...changes,
    failures,
    met,
    onNode: (node) => met.push(node),
    [Symbol.asyncDispose]: async () => connections[Symbol.asyncDispose](),
  };
}

/** What a passing create or a roll-back must not leave. */
export function leftIn(cloud: LocalCloud): { readonly machines: number; readonly groups: number } {
  const machines = cloud.instances().filter(({ state }) => state !== "terminated").length;
  return { machines, groups: cloud.groups().filter(({ groupName }) => groupName !== "default").length };
}

export const nothing = { machines: 0, groups: 0 };

/** A subnet that gives public addresses, outside the default network. */
export function subnetOfTheOtherNetwork(): string {
  const { subnets } = networksOf(
    regions.find(({ name }) => name === region)!,
    "172.31.0.0/16",
  );
  return subnets.find((subnet) => !subnet.isDefaultForZone && subnet.givesPublicAddresses)!.id;
}
