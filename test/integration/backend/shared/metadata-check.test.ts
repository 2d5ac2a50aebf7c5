import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "bun:test";
import { containerChecks } from "../../../../src/backend/container/checks.ts";
import { vmChecks } from "../../../../src/backend/vm/checks.ts";
import type { Runtime } from "../../../../src/system/runtime.ts";
import { silentProgress, systemClock } from "../../../../src/system/runtime.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

test.each([
  ["containers", (runtime: Runtime) => containerChecks("docker", runtime, neverAborted)],
  ["virtual machines", (runtime: Runtime) => vmChecks(runtime)],
] as const)(
  "doctor of %s warns where a metadata service answers, because nodes reach it too",
  async (_, checksOf) => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const environment = { AWS_EC2_METADATA_SERVICE_ENDPOINT: `http://127.0.0.1:${port}` };
    const runtime = { environment, clock: systemClock, progress: silentProgress } as Runtime;
    const check = checksOf(runtime).find(({ name }) => name === "metadata service")!;
    expect(await check.run(neverAborted)).toMatchObject({
      status: "warn",
      message: expect.stringContaining("Nodes reach it too"),
      remedy: expect.stringContaining("trust"),
    });
    server.close();
    await once(server, "close");
    expect((await check.run(neverAborted)).status).toBe("pass");
  },
);
