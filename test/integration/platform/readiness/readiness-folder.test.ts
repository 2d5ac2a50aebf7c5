/** The web UI of a platform that is a folder: where and how it is asked, if there is one. */
import { describe, expect, test } from "bun:test";
import type { PlatformFacts } from "../../../../src/platform/folder/platform-file.ts";
import { folderLayout } from "../../../../src/platform/layouts/folder.ts";
import { type Wait, createMastersChecker } from "../../../../src/platform/readiness/masters-checker.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { machinesLack, startMachines } from "../../../support/install-machine.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { leastFacts } from "../../../support/platform-facts.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { type ExampleWeb, type Identity, makeAuthority, startWeb } from "./readiness-web.ts";

interface Checked {
  readonly waits: readonly Wait[];
  readonly requests: readonly string[];
}

/** Checks a master on which the authority's file has this text. */
async function check(web: PlatformFacts["web"], identity?: Identity, authority = ""): Promise<Checked> {
  await using machines = await startMachines({ roles: ["master"] });
  await using server: ExampleWeb = startWeb({ "/broken": () => ({ status: 503 }) }, identity);
  const [machine] = machines.machines;
  if (authority !== "") await machine!.write("etc/meter/ca.pem", authority);
  const waits = await createMastersChecker(systemClock).check(
    {
      variant: "none",
      layout: folderLayout({ ...leastFacts, web }),
      isTlsEnabled: web?.scheme === "https",
      masters: [server.of(machine!.node)],
      agentCount: 1,
      login: undefined,
      connections: machines.connections,
    },
    neverAborted,
  );
  return { waits, requests: server.requests };
}

const plain = { port: 8080, path: "/ui/", scheme: "http", certificate: undefined } as const;
const encrypted = { ...plain, scheme: "https", certificate: "/etc/meter/ca.pem" } as const;

describe.skipIf(machinesLack !== undefined)("the masters of a platform that is a folder", () => {
  test("are asked nothing if it has no web UI", async () => {
    expect(await check(undefined)).toEqual({ waits: [], requests: [] });
  }, 20_000);

  test("are asked for the web UI's own path, and for nothing else", async () => {
    expect(await check(plain)).toEqual({ waits: [], requests: ["GET /ui/"] });
    expect((await check({ ...plain, path: "/broken" })).waits).toEqual([
      { subject: "master_0", reason: "HTTP at 127.0.0.1: status 503" },
    ]);
  }, 20_000);

  test("must have a certificate of the authority whose file is on them", async () => {
    await using folder = await scratchFolder();
    const authority = await makeAuthority(folder.path);
    const identity = await authority.issue("127.0.0.1");
    expect(await check(encrypted, identity, authority.certificate)).toEqual({ waits: [], requests: ["GET /ui/"] });
    expect((await check(encrypted, identity)).waits).toEqual([
      { subject: "master_0", reason: "its certificate authority is not readable yet" },
    ]);
    await using other = await scratchFolder();
    const stranger = await makeAuthority(other.path);
    const { waits, requests } = await check(encrypted, identity, stranger.certificate);
    expect(waits).toHaveLength(1);
    expect(requests).toEqual([]);
  }, 40_000);
});
