import type { Backend, CreationRequest } from "../../src/backend/contract.ts";
import { join } from "node:path";
import { CreateTagsCommand, EC2Client, TerminateInstancesCommand } from "@aws-sdk/client-ec2";
import { type Runtime, systemClock, type Work, passedMs } from "../../src/system/runtime.ts";
import { createCloudBackend } from "../../src/backend/cloud/cloud-backend.ts";
import type { CloudOptions } from "../../src/backend/cloud/options.ts";
import { createCluster } from "../../src/cluster/create.ts";
import type { CreateRequest } from "../../src/cluster/create/create-request.ts";
import type { ClusterRecord } from "../../src/model/cluster-record.ts";
import type { InstallPlan } from "../../src/platform/install/install-plan.ts";
import { networksOf } from "../local-cloud/catalogue/networks.ts";
import { regions } from "../local-cloud/catalogue/regions.ts";
import { LocalCloud, type LocalCloudOptions } from "../local-cloud/local-cloud.ts";
import { recordingProgress } from "./recording-progress.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { neverAborted } from "./never-aborted.ts";

export const region = "us-west-2";

/** How a new node answers: it reports its own host key and the end of its first boot. */
const newNode = [
  { pattern: "e2e-first-contact", replaceHostKey: true },
  { pattern: "e2e-first-boot", status: 0 },
] as const;

/** A local cloud, a state folder, and a backend that uses both. */
export interface CloudFixture extends AsyncDisposable {
  readonly cloud: LocalCloud;
  readonly runtime: Runtime;
  /** Notes, warnings and the titles of waits. */
  readonly told: string[];
  /** How each step ended; see recordingProgress. */
  readonly steps: readonly string[];
  open(chosen: string): Promise<Backend<CloudOptions>>;
  /** Changes an instance's tags, as anyone in the account may. */
  tag(instanceId: string, tags: Readonly<Record<string, string>>): Promise<void>;
  /** Terminates an instance, as anyone in the account may. */
  terminate(instanceId: string): Promise<void>;
  request(clusterId: string, changes: RequestChanges): TestRequest;
  create(
    backend: Backend<CloudOptions>,
    request: TestRequest,
    signal: AbortSignal,
  ): Promise<ClusterRecord>;
}

type Request = Omit<CreationRequest<CloudOptions>, "platform"> &
  Omit<CreateRequest<CloudOptions>, "machines" | "installation">;

export interface RequestChanges extends Partial<Request> {
  /** The last step of a creation that installs nothing. */
  readonly complete?: (cluster: ClusterRecord, signal: AbortSignal) => Promise<void>;
  /** What the creation installs. Default: nothing. */
  readonly install?: InstallPlan;
  /** Called when logs are collected, before or after the removal. */
  readonly onLogs?: (cluster: ClusterRecord) => Promise<void>;
}

interface TestRequest extends Request {
  readonly onLogs: (cluster: ClusterRecord) => Promise<void>;
  /** The clusters whose logs were collected. */
  readonly failures: ClusterRecord[];
  readonly install: InstallPlan | undefined;
  /** The text that a second interrupt would print. */
  readonly remains: () => string;
}

export async function openFixture(
  environment: Readonly<Record<string, string | undefined>>,
  options: Partial<LocalCloudOptions> = {},
): Promise<CloudFixture> {
  const folder = await scratchFolder();
  const place = { driver: "in-process", directory: folder.path } as const;
  const cloud = await LocalCloud.start({ ...place, ...options });
  cloud.answers.replace(newNode);
  const told: string[] = [];
  const { progress, steps } = recordingProgress();
  const runtime: Runtime = {
    environment: {
      ...cloud.environment,
      HOME: folder.path,
      XDG_STATE_HOME: join(folder.path, "state"),
      AWS_EC2_METADATA_DISABLED: "true",
      ...environment,
    },
    clock: systemClock,
    progress: {
      ...progress,
      note: (text) => told.push(`note: ${text}`),
      warn: (text) => told.push(`warn: ${text}`),
      waiting: (text) => told.push(`waiting: ${text}`),
      detail: (_level, text) => told.push(`detail: ${text}`),
    },
  };
  return {
    cloud,
    runtime,
    told,
    steps,
    open: async (chosen) =>
      createCloudBackend({ ...runtime, signal: neverAborted }, { region: chosen }),
    tag: async (instanceId, tags) => {
      const Tags = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
      await clientOf(cloud).send(new CreateTagsCommand({ Resources: [instanceId], Tags }));
    },
    terminate: async (instanceId) => {
      await clientOf(cloud).send(new TerminateInstancesCommand({ InstanceIds: [instanceId] }));
    },
    request: newRequest,
    create: async (backend, request, signal) =>
      createAndListen({ ...runtime, signal }, backend, request),
    [Symbol.asyncDispose]: async () => {
      await cloud[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

export function newRequest(clusterId: string, changes: RequestChanges): TestRequest {
  const { complete = async () => {}, onLogs = async () => {}, install, ...others } = changes;
  const described: (() => string)[] = [];
  return {
    clusterId,
    variant: "oss",
    distribution: "debian-12",
    counts: { master: 1, agent: 1, public_agent: 1 },
    options: { instanceType: "m5.large", customTags: [], adminCidrs: [] },
    needsCgroups1: false,
    folderDistribution: undefined,
    imagePreparation: undefined,
    openPorts: [80, 443],
    webUi: "http",
    ownKey: undefined,
    keepOnFailure: false,
    deadlineMs: passedMs(systemClock) + 30 * 60_000,
    readFacts: async ({ cluster }, signal) => complete(cluster, signal),
    onAbandon: (describe) => {
      described.push(describe);
      return { [Symbol.dispose]: () => {} };
    },
    ...others,
    onLogs,
    failures: [],
    install,
    remains: () => described.map((describe) => describe()).join("\n"),
  };
}

async function createAndListen(
  work: Work,
  backend: Backend<CloudOptions>,
  request: TestRequest,
): Promise<ClusterRecord> {
  const listening: Backend<CloudOptions> = {
    ...backend,
    consoleOutput: async (cluster, logsSignal) => {
      request.failures.push(cluster);
      await request.onLogs(cluster);
      return await backend.consoleOutput(cluster, logsSignal);
    },
  };
  return await createTestCluster(work, listening, request);
}

/** Creates a cluster with all parts of the request, those included that an installation usually decides. */
export async function createTestCluster(
  work: Work,
  backend: Backend<CloudOptions>,
  request: TestRequest,
): Promise<ClusterRecord> {
  const planning = {
    ...backend,
    plan: async (_: unknown, inner: AbortSignal) => backend.plan(request, inner),
  };
  const asked = { ...request, machines: request, installation: undefined };
  return await createCluster(work, asked, { backend: planning, install: request.install });
}

/** Everything that neither a successful create nor a roll-back may leave. */
export function leftIn(cloud: LocalCloud): {
  readonly machines: number;
  readonly groups: number;
  /** Absent if no volume has outlived its machine. */
  readonly volumes?: number;
} {
  const machines = cloud.instances().filter(({ state }) => state !== "terminated").length;
  const groups = cloud.groups().filter(({ groupName }) => groupName !== "default").length;
  const volumes = cloud.remainingVolumes().length;
  return { machines, groups, ...(volumes > 0 && { volumes }) };
}

export const nothing = { machines: 0, groups: 0 };

/** A subnet with public addresses outside the default network. */
export function subnetOfTheOtherNetwork(): string {
  const { subnets } = networksOf(
    regions.find(({ name }) => name === region)!,
    "172.31.0.0/16",
  );
  return subnets.find((subnet) => !subnet.isDefaultForZone && subnet.givesPublicAddresses)!.id;
}

const clientOf = ({ endpoint, accessKeyId, secretAccessKey }: LocalCloud): EC2Client =>
  new EC2Client({ region, endpoint, credentials: { accessKeyId, secretAccessKey } });
