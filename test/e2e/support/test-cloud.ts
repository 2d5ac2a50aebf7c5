/** A local cloud in its own process, whose machines are containers, and the environment for executables that use it. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { modelContradicted } from "../../local-cloud/endpoint/ec2-model.ts";
import { nodeImage } from "./container-engine.ts";
import { repository } from "./executable.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { type TestBackend, testProgram } from "./test-backend.ts";

interface Announcement {
  readonly endpoint: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly controlToken: string;
  readonly region: string;
  readonly checkAddressUrl: string;
  readonly gatewayAddress: string;
}

interface TestMachine {
  readonly instanceId: string;
  readonly state: string;
  readonly containerId?: string;
  readonly publicAddress?: string;
  readonly tags: Readonly<Record<string, string>>;
}

export interface TestCloud extends TestBackend {
  /** This machine, as the cloud's container machines see it. */
  readonly gatewayAddress: string;
  /** State folder, credentials and endpoints. */
  readonly environment: Readonly<Record<string, string>>;
  /** Asks or tells the local cloud something over its control endpoint, `GET` without a body. */
  control(path: string, body?: unknown): Promise<unknown>;
  /** Machines that are not terminated. */
  machines(): Promise<readonly TestMachine[]>;
}

/** `debianImage`: the container image of machines with Debian 12. */
export async function startTestCloud(
  driver: "container" | "in-process",
  debianImage = nodeImage,
): Promise<TestCloud> {
  const folder = await temporaryFolder();
  const directory = join(folder.path, "cloud");
  await mkdir(directory);
  const log = Bun.file(join(folder.path, "cloud.log"));
  const driverWords = ["--driver", driver, "--directory", directory, "--port", "0"];
  const image = driver === "container" ? ["--debian-image", debianImage] : [];
  const child = Bun.spawn(
    [process.execPath, "test/local-cloud/main.ts", ...driverWords, ...image],
    {
      cwd: repository,
      stdout: "pipe",
      stderr: log,
    },
  );
  const announcement = await firstLine(child.stdout);
  if (announcement === undefined)
    throw new Error(`the local cloud did not start:\n${await log.text()}`);
  const { endpoint, ...facts } = JSON.parse(announcement) as Announcement;
  const environment = {
    AWS_ENDPOINT_URL_EC2: endpoint,
    CLOUD_ACCESS_KEY_ID: facts.accessKeyId,
    CLOUD_SECRET_ACCESS_KEY: facts.secretAccessKey,
    CLUSTER_CHECK_ADDRESS_URL: facts.checkAddressUrl,
    XDG_STATE_HOME: join(folder.path, "state"),
    TMPDIR: folder.path,
  };
  const control = async (path: string, body?: unknown): Promise<unknown> => {
    const headers = { authorization: `Bearer ${facts.controlToken}` };
    const init =
      body === undefined ? { headers } : { headers, method: "POST", body: JSON.stringify(body) };
    const response = await fetch(`${endpoint}/_control/${path}`, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`/_control/${path}: ${response.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  };
  return {
    folder: folder.path,
    gatewayAddress: facts.gatewayAddress,
    environment,
    ...testProgram("cluster-cloud", { environment }),
    control,
    machines: async () =>
      ((await control("instances")) as TestMachine[]).filter(({ state }) => state !== "terminated"),
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await child.exited;
      const said = await log.text();
      await folder[Symbol.asyncDispose]();
      if (said.includes(modelContradicted)) throw new Error(said);
    },
  };
}

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return undefined;
    text += decoder.decode(value, { stream: true });
    const end = text.indexOf("\n");
    if (end >= 0) {
      reader.releaseLock();
      return text.slice(0, end);
    }
  }
}
