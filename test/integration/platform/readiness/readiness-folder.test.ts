/** The web UI of a platform that is a folder: where and how it is asked, if there is one. */
import { describe, expect, test } from "bun:test";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import type { PlatformFacts } from "../../../../src/platform/folder/platform-file.ts";
import { folderLayout } from "../../../../src/platform/layouts/folder.ts";
import {
  type Wait,
  createMastersChecker,
} from "../../../../src/platform/readiness/masters-checker.ts";
import { waitUntilReady } from "../../../../src/platform/readiness/readiness.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { machinesLack, startMachines } from "../../../support/install-machine.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { leastFacts } from "../../../support/platform-facts.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { fastClock } from "../../../support/scripted-clock.ts";
import { type ExampleWeb, type Identity, makeAuthority, startWeb } from "./readiness-web.ts";

interface Checked {
  readonly waits: readonly Wait[];
  readonly requests: readonly string[];
}

/** Checks a master on which the authority's file has this text. */
async function check(
  web: PlatformFacts["web"],
  identity?: Identity,
  authority = "",
): Promise<Checked> {
  await using machines = await startMachines({ roles: ["master"] });
  await using server: ExampleWeb = startWeb({ "/broken": () => ({ status: 503 }) }, identity);
  const [machine] = machines.machines;
  if (authority !== "") await machine!.write("etc/meter/ca.pem", authority);
  const waits = await createMastersChecker(systemClock)(
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
    await using machines = await startMachines({ roles: ["master"] });
    await using server: ExampleWeb = startWeb({}, undefined);
    const machine = machines.machines[0]!;
    await machine.write("var/lib/cluster-e2e/layout", "folder\n");
    await machine.write("var/lib/cluster-e2e/install.status", "exit 0\n");
    await machine.write(
      "opt/cluster-platform/platform.json",
      '{"name": "meter", "version": "1.0"}\n',
    );
    await machine.write(
      "opt/cluster-platform/check-node",
      '#!/bin/sh\necho x >>"$MACHINE/calls"\n',
    );
    await chmod(join(machine.folder, "opt/cluster-platform/check-node"), 0o755);
    const cluster = exampleCluster([server.of(machine.node)], "none");
    const request = {
      describe: async () => cluster,
      cluster,
      connections: machines.connections,
      login: undefined,
      skipHttpChecks: false,
      deadlineMs: fastClock.now() + 200_000,
      clock: fastClock,
      progress: silentProgress,
    };
    await waitUntilReady(request, neverAborted);
    expect(server.requests).toEqual([]);
    expect(await machine.read("calls")).toBe("x\nx\nx\n");
  });

  test("are asked for the web UI's own path, and for nothing else", async () => {
    expect(await check(plain)).toEqual({ waits: [], requests: ["GET /ui/"] });
    expect((await check({ ...plain, path: "/broken" })).waits).toEqual([
      { subject: "master_0", reason: "HTTP at 127.0.0.1: status 503" },
    ]);
  });

  test("must have a certificate of the authority whose file is on them", async () => {
    await using folder = await scratchFolder();
    const authority = await makeAuthority(folder.path);
    const identity = await authority.issue("127.0.0.1");
    expect(await check(encrypted, identity, authority.certificate)).toEqual({
      waits: [],
      requests: ["GET /ui/"],
    });
    expect((await check(encrypted, identity)).waits).toEqual([
      { subject: "master_0", reason: "its certificate authority is not readable yet" },
    ]);
    await using other = await scratchFolder();
    const stranger = await makeAuthority(other.path);
    const { waits, requests } = await check(encrypted, identity, stranger.certificate);
    expect(waits).toHaveLength(1);
    expect(requests).toEqual([]);
  });
});
