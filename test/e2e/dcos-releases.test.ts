/**
 * The whole flow on containers for releases of the dcos layout, with stand-ins that obey each release's row in releases.json. One early and one
 * late release run by default; CLUSTER_E2E_DCOS_RELEASES=all runs every row, of both variants.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { makeCheckout } from "./support/checkout.ts";
import { buildDcosArtifact, dcosNodeImage, dcosReleases } from "./support/dcos.ts";
import type { DcosRelease } from "./support/dcos.ts";
import { startTestContainers } from "./support/test-containers.ts";
import type { TestContainers } from "./support/test-containers.ts";

type Row = readonly [release: DcosRelease, variant: "oss" | "enterprise"];

const all = dcosReleases.flatMap((release): readonly Row[] => [
  [release, "oss"],
  [release, "enterprise"],
]);
/** The oldest of the lines that are said to work, and the newest release. */
const few: readonly Row[] = [
  [dcosReleases.find((release) => release.startsWith("1.10."))!, "oss"],
  [dcosReleases.at(-1)!, "enterprise"],
];
const isAll = process.env["CLUSTER_E2E_DCOS_RELEASES"] === "all";
const rows = isAll ? all : few;
/** Few rows wait for their machines at the same time. */
const testOfRow = isAll ? test : test.concurrent;

const state: { containers?: TestContainers; image?: string; checkout?: string } = {};
const containers = (): TestContainers => state.containers!;

beforeAll(async () => {
  state.containers = await startTestContainers();
  state.image = await dcosNodeImage();
  const names = { tests: "dcos-integration-test", library: "dcos_internal_utils" };
  const files = { tests: { "test_new.py": "# new\n" }, library: { "cli.py": "# library\n" } };
  state.checkout = await makeCheckout(join(containers().folder, "checkout"), "oss", files, names);
  await Bun.write(join(containers().folder, "license.txt"), "a-license-key\n");
});

afterAll(async () => {
  await state.containers?.[Symbol.asyncDispose]();
});

describe.each(rows)(`%s, %s (${rows.length} of ${all.length} rows)`, (release, variant) => {
  const id = (): string => containers().id(`${release.replaceAll(".", "-")}-${variant}`);
  const run = async (command: string, ...words: readonly string[]) =>
    containers().run([command, "-c", id(), ...words]);

  // Shows R114.
  testOfRow(
    "is created, waited for, used, synced to, logged and destroyed",
    async () => {
      const artifact = await buildDcosArtifact(variant, release, containers().folder);
      const license =
        variant === "enterprise" ? ["--license-key", join(containers().folder, "license.txt")] : [];
      const own = [
        "--variant",
        variant,
        "--public-agents",
        "0",
        "--node-image",
        state.image!,
        ...license,
      ];
      const created = await run("create", ...own, artifact);
      expect({
        status: created.status,
        stderr: created.status === 0 ? "" : created.stderr,
      }).toEqual({
        status: 0,
        stderr: "",
      });

      const waited = await run("wait", "--timeout", "2m");
      expect({ status: waited.status, stderr: waited.status === 0 ? "" : waited.stderr }).toEqual({
        status: 0,
        stderr: "",
      });

      // There are no public agents: the release's tests must not insist on them.
      expect(await run("run", "python3 test_stand_in.py")).toMatchObject({
        status: 0,
        stdout: "2 passed\n",
      });
      expect((await run("run", "--node", "agent_0", "ls /etc/mesosphere/roles")).stdout).toBe(
        "slave\n",
      );

      const synced = await run("sync", state.checkout!);
      expect({ status: synced.status, stderr: synced.status === 0 ? "" : synced.stderr }).toEqual({
        status: 0,
        stderr: "",
      });
      const folder = variant === "oss" ? "." : "open_source_tests";
      expect((await run("run", `ls ${folder}/test_new.py`)).stdout).toBe(`${folder}/test_new.py\n`);

      const logs = (await run("logs")).stdout.trim();
      const installLog = (await readdir(logs, { recursive: true })).find((file) =>
        /master_0.*install/.test(file),
      )!;
      expect(await readFile(join(logs, installLog), "utf8")).toContain(
        "Checking if port 53 is free: PASS",
      );

      expect(await run("destroy")).toMatchObject({ status: 0 });
      expect(await containers().things(id())).toEqual([]);
    },
    400_000,
  );
});
