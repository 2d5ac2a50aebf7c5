import { expect, test } from "bun:test";
import {
  chmod,
  cp,
  mkdir,
  readdir,
  rm,
  stat,
  utimes,
  writeFile,
  rename,
  symlink,
} from "node:fs/promises";
import { join } from "node:path";
import { outside } from "../../../../src/outside-text.ts";
import { parseReport } from "../../../../src/backend/vm/templates/agent.ts";
import {
  limitTemplates,
  listTemplates,
  lockTemplate,
  markUsed,
  readTemplate,
  removeUnused,
  unmarkUsed,
  writeTemplate,
} from "../../../../src/backend/vm/templates/template-files.ts";
import { vmChecks } from "../../../../src/backend/vm/checks.ts";
import { architectureOf } from "../../../../src/backend/vm/qemu/architecture.ts";
import { vmTemplates } from "../../../../src/backend/vm/templates/vm-templates.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const kind = {
  image: "/images/debian-12.img",
  memoryMegabytes: 768,
  cpus: 1,
  diskMegabytes: 4096,
  accelerator: "tcg",
  qemuVersion: "7.2.22",
} as const;
const createdAt = "2026-01-02T03:04:05.000Z";
const names = ["0000000000000001", "0000000000000002", "0000000000000003"] as const;

/** Three templates of 100 kB each, from the one that was used longest ago to the newest. */
async function openTemplates() {
  const cache = await scratchFolder();
  const folder = join(cache.path, "cluster-e2e", "templates");
  for (const [index, name] of names.entries()) {
    await mkdir(join(folder, name), { recursive: true });
    for (const file of ["memory", "state", "disk.qcow2", "console.txt"])
      await writeFile(join(folder, name, file), new Uint8Array(file === "memory" ? 100_000 : 10));
    await writeTemplate(join(folder, name), { kind, createdAt });
    await utimes(join(folder, name, "template.json"), 1_000 + index, 1_000 + index);
  }
  const cluster = join(cache.path, "one-0123456789abcdef");
  await mkdir(cluster);
  await writeFile(join(cluster, "cluster.json"), "{}");
  return {
    folder,
    store: { folder, clock: systemClock },
    templates: vmTemplates({ environment: { XDG_CACHE_HOME: cache.path }, clock: systemClock }),
    cluster,
    at: (name: string) => ({ name, folder: join(folder, name) }),
    left: async () => (await listTemplates(folder)).map(({ name }) => name),
    [Symbol.asyncDispose]: async () => cache[Symbol.asyncDispose](),
  };
}

test.each(["memory", "state", "disk.qcow2"])(
  "a template whose %s somebody has touched is damaged",
  async (file) => {
    await using opened = await openTemplates();
    const template = opened.at(names[0]);
    expect(await readTemplate(template)).toMatchObject({ kind });
    await writeFile(join(template.folder, file), "x", { flag: "r+" });
    expect(await readTemplate(template)).toBeUndefined();
  },
);

test("a template without one of its files, or with other facts, is damaged", async () => {
  await using opened = await openTemplates();
  await rm(join(opened.at(names[0]).folder, "state"));
  await writeFile(join(opened.at(names[1]).folder, "template.json"), "{}");
  expect(await readTemplate(opened.at(names[0]))).toBeUndefined();
  expect(await readTemplate(opened.at(names[1]))).toBeUndefined();
  expect(await opened.templates.list(neverAborted)).toMatchObject([
    { name: names[0], machine: undefined, createdAt: undefined },
    { name: names[2], machine: expect.any(String), createdAt: expect.any(Date) },
    { name: names[1], machine: undefined, createdAt: undefined },
  ]);
});

test("a template counts as used if nobody can tell: a mark or a cluster's folder that can't be read", async () => {
  await using opened = await openTemplates();
  await markUsed(opened.at(names[0]), "0123456789abcdef", opened.cluster);
  await rm(opened.cluster, { recursive: true });
  await symlink(opened.cluster, opened.cluster);
  await mkdir(join(opened.at(names[1]).folder, "users", "unreadable"), { recursive: true });
  await symlink("users", join(opened.at(names[2]).folder, "users"));
  await opened.templates.remove(undefined, neverAborted);
  expect((await opened.left()).toSorted()).toEqual([...names]);
  await rm(opened.cluster);
  await opened.templates.remove(undefined, neverAborted);
  expect((await opened.left()).toSorted()).toEqual([names[1], names[2]]);
});

test("the limit removes the templates that were used longest ago, but none that a cluster needs", async () => {
  await using opened = await openTemplates();
  const { store } = opened;
  await markUsed(opened.at(names[0]), "0123456789abcdef", opened.cluster);
  await utimes(join(opened.at(names[0]).folder, "template.json"), 1_000, 1_000);
  const sizes = (await listTemplates(opened.folder)).map(({ sizeBytes }) => sizeBytes);
  await limitTemplates(
    store,
    sizes.reduce((sum, size) => sum + size),
    neverAborted,
  );
  expect(await opened.left()).toEqual([...names]);
  await limitTemplates(store, 250_000, neverAborted);
  expect(await opened.left()).toEqual([names[0], names[2]]);
  await limitTemplates(store, 0, neverAborted);
  expect(await opened.left()).toEqual([names[0]]);
  await rm(join(opened.cluster, "cluster.json"));
  await limitTemplates(store, 0, neverAborted);
  expect((await readdir(opened.folder)).filter((name) => !name.endsWith(".lock"))).toEqual([]);
});

test("a template stays for a cluster whose state folder was moved, or is reached by another path", async () => {
  await using opened = await openTemplates();
  await using state = await scratchFolder();
  const [root, link, moved] = ["root", "link", "moved"].map((name) => join(state.path, name));
  const name = "one-0123456789abcdef";
  await mkdir(join(root!, name), { recursive: true });
  await writeFile(join(root!, name, "cluster.json"), "{}");
  await symlink(root!, link!);
  await markUsed(opened.at(names[0]), "0123456789abcdef", join(link!, name));
  await rm(link!);
  expect(await removeUnused(opened.store, names[0])).toBe(false);
  await rename(root!, moved!);
  expect(await removeUnused(opened.store, names[0])).toBe(false);
  // Another folder has come to stand there, in which the cluster was never removed.
  await mkdir(root!);
  expect(await removeUnused(opened.store, names[0])).toBe(false);
  await rm(root!, { recursive: true });
  await rename(moved!, root!);
  await rm(join(root!, name), { recursive: true });
  expect(await removeUnused(opened.store, names[0])).toBe(true);
});

test("a cluster that needs a template makes it the newest, until it no longer does", async () => {
  await using opened = await openTemplates();
  const template = opened.at(names[0]);
  for (const _ of [1, 2]) await markUsed(template, "0123456789abcdef", opened.cluster);
  expect(await opened.left()).toEqual([names[1], names[2], names[0]]);
  expect(await removeUnused(opened.store, names[0])).toBe(false);
  for (const _ of [1, 2]) await unmarkUsed(template, "0123456789abcdef");
  for (const _ of [1, 2]) expect(await removeUnused(opened.store, names[0])).toBe(true);
  expect(await opened.left()).toEqual([names[1], names[2]]);
});

test("the folder of the templates is made for this user alone, and nothing else is read before there is one", async () => {
  await using cache = await scratchFolder();
  const templates = vmTemplates({
    environment: { XDG_CACHE_HOME: cache.path },
    clock: systemClock,
  });
  expect(await templates.remove(undefined, neverAborted)).toEqual([]);
  expect(await readdir(cache.path)).toEqual([]);
  const folder = join(cache.path, "cluster-e2e", "templates");
  // As other programs may have made it.
  await mkdir(join(folder, ".."));
  await chmod(join(folder, ".."), 0o755);
  await using _ = await lockTemplate(
    { folder, clock: systemClock },
    names[0],
    silentProgress,
    neverAborted,
  );
  for (const path of [folder, join(folder, "..")])
    expect((await stat(path)).mode & 0o777).toBe(0o700);
});

test("neither the limit nor a removal touches what another process makes, and both remove what a dead one left", async () => {
  await using opened = await openTemplates();
  for (const name of names) {
    await mkdir(join(opened.folder, `.${name}-draft`));
    await writeFile(join(opened.folder, `.${name}-draft`, "memory"), "");
  }
  {
    await using _ = await lockTemplate(opened.store, names[1], silentProgress, neverAborted);
    expect(await opened.templates.remove(undefined, neverAborted)).toEqual([names[0], names[2]]);
  }
  expect((await readdir(opened.folder)).filter((name) => !name.endsWith(".lock"))).toEqual([
    `.${names[1]}-draft`,
    names[1],
  ]);
});

test("a template that is used is listed with its cluster, and can't be removed by its name", async () => {
  await using opened = await openTemplates();
  const another = join(opened.cluster, "..", "another-0123456789abcdee");
  await cp(opened.cluster, another, { recursive: true });
  await markUsed(opened.at(names[1]), "0123456789abcdef", opened.cluster);
  await markUsed(opened.at(names[1]), "f", another);
  const large = { ...kind, cpus: 2, cpuModel: "Nehalem" };
  await rm(join(opened.at(names[2]).folder, "template.json"));
  await writeTemplate(opened.at(names[2]).folder, { kind: large, createdAt });
  const listed = await opened.templates.list(neverAborted);
  expect(listed.find(({ name }) => name === names[1])).toMatchObject({
    clusters: ["another", "one"],
    machine: "debian-12.img, 768 MB, 1 CPU, disk 4096 MB, tcg",
    createdAt: new Date(createdAt),
  });
  expect(listed.find(({ name }) => name === names[2])).toMatchObject({
    machine: "debian-12.img, 768 MB, 2 CPUs (Nehalem), disk 4096 MB, tcg",
  });
  for (const [name, message] of [
    [names[1], `The template ${names[1]} is in use.`],
    ["0000000000000009", 'There is no template "0000000000000009".'],
  ] as const)
    expect(await failureOf(opened.templates.remove(name, neverAborted))).toMatchObject({
      id: "bad-usage",
      message,
    });
  expect(await opened.templates.remove(names[0], neverAborted)).toEqual([names[0]]);
});

test("doctor names each template with its age and use, and what is wrong with it", async () => {
  await using opened = await openTemplates();
  const environment = { XDG_CACHE_HOME: join(opened.folder, "..", "..") };
  const clock = { ...systemClock, now: () => Date.parse(createdAt) + 5_400_000 };
  const checks = vmChecks({ environment, clock, progress: silentProgress }, architectureOf("x64"));
  const check = async () => checks.find(({ name }) => name === "templates")!.run(neverAborted);
  await rm(join(opened.at(names[0]).folder, "memory"));
  await markUsed(opened.at(names[1]), "0123456789abcdef", opened.cluster);
  await writeTemplate(opened.at(names[2]).folder, { kind, createdAt, problem: "it has no perl" });
  const { message, details } = await check();
  expect(message).toBe(`3 in ${opened.folder}, 0.0 GB`);
  const used = `${names[1]}: 0.0 GB, 1 h old, in use`;
  expect(details!.toSorted()).toEqual([
    `${names[0]}: 0.0 GB, damaged, unused`,
    used,
    `${names[2]}: 0.0 GB, it has no perl, unused`,
  ]);
  await limitTemplates(opened.store, 0, neverAborted);
  expect((await check()).details).toEqual([used]);
  await unmarkUsed(opened.at(names[1]), "0123456789abcdef");
  await limitTemplates(opened.store, 0, neverAborted);
  expect((await check()).status).toBe("skip");
});

test("a template in another cache folder isn't marked, and nothing is made there", async () => {
  await using opened = await openTemplates();
  await markUsed(opened.at("0000000000000009"), "0123456789abcdef", opened.cluster);
  expect(await opened.left()).toEqual([...names]);
});

test("a report is one of few words, and nothing else that a node writes is one", () => {
  expect(parseReport("done")).toEqual({ is: "done" });
  expect(parseReport("ready")).toEqual({ is: "ready" });
  expect(parseReport("failed")).toMatchObject({ is: "failed" });
  expect(parseReport("unsuitable it has no perl")).toEqual({
    is: "unsuitable",
    why: outside("it has no perl"),
  });
  // The last line of a log may be a progress bar.
  expect(parseReport("failed 10 %\r20 %\r")).toMatchObject({
    is: "failed",
    why: expect.stringContaining("20 %"),
  });
  for (const line of ["", "is done", "Done", "x".repeat(10_000)])
    expect(parseReport(line)).toBeUndefined();
});
