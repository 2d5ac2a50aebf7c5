import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "bun:test";
import { containerChecks } from "../../../../src/backend/container/checks.ts";
import { vmChecks } from "../../../../src/backend/vm/checks.ts";
import type { Runtime } from "../../../../src/system/runtime.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const ofContainers = (runtime: Runtime) =>
  containerChecks({ ...runtime, signal: neverAborted }, "docker");

test.each([
  ["containers", "127.0.0.1", ofContainers],
  ["containers", "::1", ofContainers],
  ["virtual machines", "127.0.0.1", vmChecks],
] as const)(
  "doctor of %s warns where a metadata service answers at %s, because nodes reach it too",
  async (_, address, checksOf) => {
    const server = createServer().listen(0, address);
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const host = address === "::1" ? "[::1]" : address;
    const environment = { AWS_EC2_METADATA_SERVICE_ENDPOINT: `http://${host}:${port}` };
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
