import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  DescribeImagesCommand,
  EC2Client,
  type RunInstancesCommandInput,
} from "@aws-sdk/client-ec2";
import { LocalCloud, type LocalCloudOptions } from "../local-cloud.ts";

/** Port 22 if this process may use it, otherwise any other. */
const sshPort = process.getuid?.() === 0 ? 22 : 2022;

/** A local cloud with in-process machines, an SDK client for it, and a folder that is removed with it. */
export async function startCloud(
  options: Partial<LocalCloudOptions>,
): Promise<AsyncDisposable & { readonly cloud: LocalCloud; readonly client: EC2Client }> {
  const directory = await mkdtemp(join(tmpdir(), "local-cloud-"));
  const cloud = await LocalCloud.start({ driver: "in-process", directory, sshPort, ...options });
  return {
    cloud,
    client: clientOf(cloud, {}),
    [Symbol.asyncDispose]: async () => {
      await cloud[Symbol.asyncDispose]();
      await rm(directory, { recursive: true });
    },
  };
}

interface ClientSettings {
  readonly region?: string;
  readonly accessKeyId?: string;
  readonly secretAccessKey?: string;
  readonly sessionToken?: string;
}

/** Makes only one attempt, so that a test sees each response. */
export function clientOf(cloud: LocalCloud, settings: ClientSettings): EC2Client {
  const { sessionToken, region = cloud.region } = settings;
  const { accessKeyId = cloud.accessKeyId, secretAccessKey = cloud.secretAccessKey } = settings;
  return new EC2Client({
    endpoint: cloud.endpoint,
    region,
    maxAttempts: 1,
    credentials: {
      accessKeyId,
      secretAccessKey,
      ...(sessionToken !== undefined && { sessionToken }),
    },
  });
}

/** Awaits the call and returns the error's name: `await codeOf(client.send(…))`. */
export async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "ok";
  } catch (error) {
    return error instanceof Error ? error.name : String(error);
  }
}

/** Awaits the call and returns the error's message, or nothing if it succeeds. */
export async function failureOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Repeats the call until `isReached`, for results that a cloud shows only after a while, below the limit of the tests' tier. */
export async function eventually<Value>(
  call: () => Promise<Value>,
  isReached: (value: Value) => boolean,
): Promise<Value> {
  const deadline = Date.now() + 250_000;
  for (;;) {
    const value = await call();
    if (isReached(value)) return value;
    if (Date.now() > deadline) throw new Error(`not reached: ${JSON.stringify(value)}`);
    await Bun.sleep(10);
  }
}

/** The minimal request that launches one machine of an image. */
export function launchOf(
  imageId: string,
  changes: Partial<RunInstancesCommandInput>,
): RunInstancesCommandInput {
  return { ImageId: imageId, InstanceType: "m5.large", MinCount: 1, MaxCount: 1, ...changes };
}

/** The newest image of Debian 12. */
export async function debianImage(client: EC2Client): Promise<string> {
  const wanted = { name: "debian-12-amd64-*", state: "available", "virtualization-type": "hvm" };
  const Filters = Object.entries(wanted).map(([Name, value]) => ({ Name, Values: [value] }));
  const { Images = [] } = await client.send(
    new DescribeImagesCommand({ Owners: ["136693071363"], Filters }),
  );
  return Images.toSorted((a, b) => b.CreationDate!.localeCompare(a.CreationDate!))[0]!.ImageId!;
}
