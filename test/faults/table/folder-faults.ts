/** Faults that meet a creation from a platform's folder. */
import { chmod, mkdir, readdir, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import type { Ended } from "../../e2e/support/executable.ts";
import type { ScriptedAnswer } from "../../local-cloud/machines/scripted-answers.ts";
import { until } from "../../support/until.ts";
import type { Fault } from "../fault.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import { answering, failed } from "./cloud-injections.ts";

type CloudFault = Fault<CloudWorld>;

const words =
  "create --wait --timeout 60s --agents 1 --public-agents 0 --linux-distribution debian-12 -c faulty meter".split(
    " ",
  );

/** What machines say on which such a platform is installed. */
const installing: readonly ScriptedAnswer[] = [
  {
    pattern: "artifact\\.sh --version",
    stdout: '{"variant":"none","version":"1.0","name":"meter"}\n',
  },
  { pattern: "artifact\\.sh --genconf", stdout: "platform_install.sh\n", readsStdin: true },
];
const facts = 'facts={"name": "meter", "version": "1.0"}\n';

/** A platform with a file that takes a while to pack. */
async function writeMeter(world: CloudWorld): Promise<string> {
  const folder = join(world.folder, "meter");
  await mkdir(folder);
  await Bun.write(join(folder, "platform.yaml"), 'name: meter\nversion: "1.0"\n');
  for (const name of ["install", "check"]) {
    await Bun.write(join(folder, name), "#!/bin/sh\n");
    await chmod(join(folder, name), 0o755);
  }
  await Bun.write(join(folder, "large"), "");
  await truncate(join(folder, "large"), 400_000_000);
  return folder;
}

/** Creates a cluster of it; once the folder is being packed, something happens. */
const whilePacking =
  (
    happens: (
      world: CloudWorld,
      running: ReturnType<CloudWorld["start"]>,
    ) => Promise<unknown> | void,
  ) =>
  async (world: CloudWorld): Promise<Ended> => {
    const folder = await writeMeter(world);
    const running = world.start(words);
    const isPacking = async (): Promise<boolean> =>
      (await readdir(world.temporaryFolder, { recursive: true })).some((name) =>
        name.endsWith("/draft"),
      );
    await until("the folder is being packed", isPacking);
    await happens(world, running);
    const ended = await running.ended;
    await rm(folder, { recursive: true });
    // Only a program that was killed leaves it.
    await rm(world.temporaryFolder, { recursive: true });
    await mkdir(world.temporaryFolder);
    return ended;
  };

/** The platform is installed, and its nodes say this. */
const saying = (name: string, readiness: string, expected: CloudFault["expected"]): CloudFault => ({
  name,
  place: "machine",
  seconds: 15,
  strike: answering(...installing, {
    pattern: "e2e-readiness",
    stdout: `layout=folder\n${readiness}${facts}`,
    readsStdin: true,
  }),
  act: async (world) => {
    const folder = await writeMeter(world);
    await truncate(join(folder, "large"), 0);
    const ended = await world.run(words.map((word) => (word === "60s" ? "15s" : word)));
    await rm(folder, { recursive: true });
    return ended;
  },
  expected,
});

export const folderFaults: readonly CloudFault[] = [
  {
    name: "a folder changes while it is packed",
    place: "artifact",
    seconds: 10,
    strike: answering(...installing),
    act: whilePacking(async (world) => truncate(join(world.folder, "meter", "large"), 1000)),
    expected: failed("transfer-failed", "large"),
  },
  {
    name: "kill -9 while a folder is packed",
    place: "computer",
    seconds: 10,
    strike: answering(...installing),
    act: whilePacking((_world, running) => running.interrupt("SIGKILL")),
    expected: { status: "SIGKILL", says: [], keepsCluster: false },
  },
  saying("a folder's install fails", "status=exit 3\nunit=failed\nlog=no license\n", {
    ...failed("install-failed", "no license"),
    keepsCluster: true,
  }),
  saying("a folder's check hangs", "status=exit 0\nunit=active\ncheck.status=124\n", {
    ...failed("deadline-passed", "its check did not finish within 20 s", 4),
    keepsCluster: true,
  }),
];
