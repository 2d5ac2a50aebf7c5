import { expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { chmod, mkdir, readdir, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { draftBeside, writeNamedFile, writeProblem } from "../../../../src/system/files/draft.ts";
import { temporaryFolder } from "../../../../src/system/files/private-file.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const code = `
const { draftBeside } = await import(process.argv[1]);
await Bun.write((await draftBeside(process.argv[2])).path, "begun");
console.log("begun");
setInterval(() => {}, 1000);
`;
const source = join(import.meta.dir, "../../../../src/system/files/draft.ts");

/** Another program that begins to write a file, and doesn't end. */
async function writer(target: string) {
  const started = Bun.spawn(["bun", "-e", code, source, target], {
    stdout: "pipe",
    stderr: "inherit",
  });
  await started.stdout.getReader().read();
  return {
    kill: async (): Promise<void> => {
      started.kill("SIGKILL");
      await started.exited;
    },
  };
}

const drafting = `
await using draft = await (await import(process.argv[1])).draftBeside(process.argv[2]);
await Bun.write(draft.path, "");
`;
const naming = `await (await import(process.argv[1])).writeNamedFile(process.argv[2], "text");`;

/** Runs a program that writes a file, as root without the right to read every folder. */
async function write(target: string, writing: string): Promise<string> {
  const limits =
    process.getuid?.() === 0 ? ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] : [];
  const argv = [...limits, process.execPath, "-e", writing, source, target];
  const child = Bun.spawn(argv, { stdout: "ignore", stderr: "pipe" });
  const [status, stderr] = await Promise.all([child.exited, new Response(child.stderr).text()]);
  return status === 0 ? "written" : stderr;
}

test("a folder need not be readable", async () => {
  await using scratch = await scratchFolder();
  await chmod(scratch.path, 0o300);
  expect(await write(join(scratch.path, "file"), drafting)).toBe("written");
  expect(await write(join(scratch.path, "named"), naming)).toBe("written");
  await chmod(scratch.path, 0o700);
  expect(await readdir(scratch.path)).toEqual(["named"]);
});

/** Somebody who may write to a folder without a sticky bit gives one folder's name to another. */
function exchange(folder: string, put: string): void {
  const mv = (from: string, to: string): void =>
    void execFileSync("mv", ["-T", from, to], { uid: isRoot ? 65_534 : undefined });
  mv(folder, `${folder}.aside`);
  mv(put, folder);
}

const isRoot = process.getuid?.() === 0;

test.skipIf(process.platform !== "linux")(
  "who renames the folder of a draft leads neither what is written nor what is removed elsewhere",
  async () => {
    await using scratch = await scratchFolder();
    await chmod(scratch.path, 0o777);
    const at = (...names: string[]): string => join(scratch.path, ...names);
    for (const name of ["elsewhere", "precious"]) await mkdir(at(name), { mode: 0o700 });
    await writeFile(at("precious", "file"), "mine");
    await symlink(at("elsewhere"), at("link"));
    for (const put of ["link", "precious"]) {
      await using draft = await draftBeside(at("file"));
      const [folder = ""] = (await readdir(scratch.path)).filter((name) =>
        /^cluster-e2e-.{6}$/.test(name),
      );
      exchange(at(folder), at(put));
      await writeFile(draft.path, put, { flag: "wx" });
      await rename(draft.path, at("file"));
      expect(await Bun.file(at("file")).text()).toBe(put);
      await draft[Symbol.asyncDispose]();
      await rename(at(folder), at(`${put}-again`));
    }
    expect(await readdir(at("elsewhere"))).toEqual([]);
    expect(await readdir(at("precious-again"))).toEqual(["file"]);
  },
);

test.skipIf(process.platform !== "linux")(
  "who renames the folder of a trial of writing doesn't lead the trial elsewhere",
  async () => {
    await using scratch = await scratchFolder();
    await chmod(scratch.path, 0o777);
    const at = (...names: string[]): string => join(scratch.path, ...names);
    await mkdir(at("elsewhere"), { mode: 0o700 });
    await writeFile(at("elsewhere", "trial"), "mine");
    await symlink(at("elsewhere"), at("link"));
    const seen: (string | undefined)[] = [];
    const problem = await writeProblem(scratch.path, async (trial) => {
      const [folder = ""] = (await readdir(scratch.path)).filter((name) =>
        /^cluster-e2e-.{6}$/.test(name),
      );
      exchange(at(folder), at("link"));
      seen.push(...(await readdir(trial)));
      await writeFile(join(trial, "trial"), "written");
      return undefined;
    });
    expect(problem).toBeUndefined();
    expect(new Set(seen)).toEqual(new Set(["owner.json", "trial"]));
    expect(await Bun.file(at("elsewhere", "trial")).text()).toBe("mine");
  },
);

test.skipIf(process.platform !== "linux")(
  "another folder that has a temporary folder's name by now is not removed",
  async () => {
    await using scratch = await scratchFolder();
    const [precious, aside] = [join(scratch.path, "precious"), join(scratch.path, "aside")];
    await mkdir(precious, { mode: 0o700 });
    await writeFile(join(precious, "file"), "mine");
    const folder = await temporaryFolder(scratch.path);
    await rename(folder.path, aside);
    await rename(precious, folder.path);
    await folder[Symbol.asyncDispose]();
    expect(await Bun.file(join(folder.path, "file")).text()).toBe("mine");
  },
);

test("a draft leaves nothing, and what killed programs left beside it goes", async () => {
  await using scratch = await scratchFolder();
  const killed = await writer(join(scratch.path, "file"));
  const other = await writer(join(scratch.path, "other"));
  const alive = await writer(join(scratch.path, "file"));
  await killed.kill();
  await other.kill();
  await mkdir(join(scratch.path, "cluster-e2e-abcdef"));
  await writeFile(join(scratch.path, "cluster-e2e-abcdef", "mine"), "");
  expect(await readdir(scratch.path)).toHaveLength(4);
  {
    await using draft = await draftBeside(join(scratch.path, "file"));
    await writeFile(draft.path, "");
    expect(await readdir(scratch.path)).toHaveLength(3);
  }
  const left = await readdir(scratch.path, { recursive: true });
  expect(left.filter((name) => name.endsWith("/draft"))).toHaveLength(1);
  expect(left).toContain("cluster-e2e-abcdef/mine");
  await alive.kill();
});

test("a trial of writing leaves nothing, and what a killed one left goes", async () => {
  await using scratch = await scratchFolder();
  await (await writer(join(scratch.path, "file"))).kill();
  expect(await readdir(scratch.path)).toHaveLength(1);
  expect(await writeProblem(join(scratch.path, "new", "folder"))).toBeUndefined();
  expect(await readdir(scratch.path)).toEqual([]);
});

test("a file that the user names gets the folders that it lacks, and says why it can't be", async () => {
  await using scratch = await scratchFolder();
  const file = join(scratch.path, "new", "folders", "file");
  await writeNamedFile(file, "text");
  expect(await Bun.file(file).text()).toBe("text");
  const inFile = join(file, "below");
  const error = await failureOf(writeNamedFile(inFile, "text"));
  expect([error.id, error.message]).toEqual([
    "bad-usage",
    `Cannot write ${inFile}: a file is in the place of one of its folders.`,
  ]);
});
