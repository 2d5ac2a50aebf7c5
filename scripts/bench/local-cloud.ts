/** A local cloud in a process of its own, so that the bench measures the product alone. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dir, "..", "..");

export interface BenchCloud extends AsyncDisposable {
  readonly folder: string;
  /** Credentials, endpoint and state folder for the executable. */
  readonly environment: Readonly<Record<string, string>>;
  /** Requests by action since the cloud began or was last asked. */
  requestCounts(): Promise<Readonly<Record<string, number>>>;
}

interface Announcement {
  readonly endpoint: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly controlToken: string;
  readonly checkAddressUrl: string;
}

export async function startBenchCloud(
  driver: "container" | "in-process",
  words: readonly string[],
): Promise<BenchCloud> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-bench-"));
  const directory = join(folder, "cloud");
  await mkdir(directory);
  const log = Bun.file(join(folder, "cloud.log"));
  const child = Bun.spawn(
    [
      process.execPath,
      "test/local-cloud/main.ts",
      "--driver",
      driver,
      "--directory",
      directory,
      ...words,
    ],
    { cwd: root, stdout: "ignore", stderr: log },
  );
  const close = async (): Promise<void> => {
    child.kill("SIGTERM");
    await child.exited;
    await rm(folder, { recursive: true, force: true });
  };
  const announcement = await announced(join(directory, "local-cloud.json"), child.exited);
  if (announcement === undefined)
    throw new Error(`the local cloud did not start:\n${await log.text()}`);
  const { endpoint } = announcement;
  return {
    folder,
    environment: {
      AWS_ENDPOINT_URL_EC2: endpoint,
      CLOUD_ACCESS_KEY_ID: announcement.accessKeyId,
      CLOUD_SECRET_ACCESS_KEY: announcement.secretAccessKey,
      CLUSTER_CHECK_ADDRESS_URL: announcement.checkAddressUrl,
      XDG_STATE_HOME: join(folder, "state"),
    },
    requestCounts: async () => {
      const headers = { authorization: `Bearer ${announcement.controlToken}` };
      const control = `${endpoint}/_control/requests`;
      const { counts } = (await (await fetch(control, { headers })).json()) as {
        counts: Record<string, number>;
      };
      await fetch(control, { headers, method: "DELETE" });
      return counts;
    },
    [Symbol.asyncDispose]: close,
  };
}

/** The file appears whole once the cloud serves. */
async function announced(path: string, exited: Promise<number>): Promise<Announcement | undefined> {
  const gone = { now: false };
  exited.then(
    () => (gone.now = true),
    () => (gone.now = true),
  );
  for (
    const deadline = Date.now() + 30_000;
    Date.now() < deadline && !gone.now;
    await Bun.sleep(50)
  ) {
    const text = await Bun.file(path)
      .text()
      .catch(() => "");
    if (text.endsWith("\n")) return JSON.parse(text) as Announcement;
  }
  return undefined;
}
