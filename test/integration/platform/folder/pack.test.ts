/** The artifact of a platform's folder, run on this machine as far as that changes nothing outside of its own folder. */
import { describe, expect, test } from "bun:test";
import {
  cp,
  mkdir,
  readFile,
  readdir,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { laterFile } from "../../../../src/commands/options.ts";
import { parseArtifactVersion } from "../../../../src/platform/artifact/artifact-version.ts";
import { writeExample } from "../../../../src/platform/examples/examples.ts";
import { packFolder, writeArtifact } from "../../../../src/platform/folder/pack.ts";
import { readPlatformFolder } from "../../../../src/platform/folder/read-folder.ts";
import { accepted } from "../../../../src/model/checked.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { writePlatform } from "../../../support/platform-folder.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const read = async (folder: string) => accepted(await readPlatformFolder(folder, neverAborted));

async function pack(folder: string, file: string): Promise<Buffer> {
  await writeArtifact(await read(folder), file, neverAborted);
  return readFile(file);
}

const canRun = (name: string): boolean =>
  Bun.which(name) !== null && Bun.spawnSync([name, "--version"]).success;
const pythons = ["python3", "python2.7"].filter(canRun);

async function runArtifact(file: string, flag: string, cwd: string, python = "python3") {
  const bin = join(cwd, "bin");
  await mkdir(bin, { recursive: true });
  await symlink(Bun.which(python)!, join(bin, "python3")).catch(() => {});
  const env = { ...process.env, PATH: `${bin}:${process.env["PATH"]}`, LC_ALL: "C" };
  const child = Bun.spawn(["bash", file, flag], { cwd, env, stdout: "pipe", stderr: "pipe" });
  const [status, stdout, stderr] = await Promise.all([
    child.exited,
    child.stdout.text(),
    child.stderr.text(),
  ]);
  return { status, stdout, stderr };
}

const mountLack =
  process.getuid?.() === 0 && process.platform === "linux"
    ? undefined
    : "nothing can be mounted here";

test.skipIf(mountLack !== undefined)(
  `on a full disk, neither an artifact nor an example is left, and the error says what is full (${mountLack ?? "here"})`,
  async () => {
    await using scratch = await scratchFolder();
    const folder = await writePlatform(join(scratch.path, "platform"), {});
    const full = join(scratch.path, "full");
    await mkdir(full);
    // Three pages: for the example's folder and some of its files.
    await Bun.$`mount -t tmpfs -o size=12k tmpfs ${full}`.quiet();
    try {
      const [file, example] = [join(full, "artifact.sh"), join(full, "etcd")];
      const failure = {
        id: "machine-not-set-up",
        hint: expect.stringContaining("Free some space"),
      };
      const packed = await failureOf(
        packFolder({ folder, platform: await read(folder), file }, neverAborted),
      );
      expect(packed).toMatchObject({
        ...failure,
        message: expect.stringContaining(`Cannot write ${file}: no space left on device`),
      });
      expect(await readdir(full)).toEqual([]);
      const written = await failureOf(writeExample("etcd", example));
      expect(written).toMatchObject({
        ...failure,
        message: expect.stringContaining(`Cannot write ${example}: no space left on device`),
      });
      expect(await readdir(example)).toEqual([]);
      // It is no mistake on the command line, before any work.
      await writeFile(join(full, "rest"), Buffer.alloc(16_000)).catch(() => {});
      const report = failureOf(laterFile("full/report.html", { cwd: scratch.path }));
      expect(await report).toMatchObject({
        ...failure,
        message: expect.stringContaining("report.html: no space left on device"),
      });
    } finally {
      await Bun.$`umount ${full}`.quiet();
    }
  },
);

describe("an artifact", () => {
  test("has the same bytes for a copy of the folder with other times, modes and order", async () => {
    await using scratch = await scratchFolder();
    const path = (name: string): string => join(scratch.path, name);
    const folder = await writePlatform(path("one"), {
      "tests/t": "x".repeat(100_000),
      "a/b/c": "",
      é: "y",
    });
    const first = await pack(folder, path("first.sh"));
    expect(await pack(folder, path("second.sh"))).toEqual(first);
    await mkdir(path("two"));
    for (const name of (await readdir(folder)).toReversed())
      await cp(join(folder, name), join(path("two"), name), { recursive: true });
    await utimes(join(path("two"), "install"), 1, 1.5);
    await Bun.$`chmod -R go-rwx ${path("two")}`;
    expect(await pack(path("two"), path("third.sh"))).toEqual(first);
    await writeFile(join(path("two"), "a/b/c"), "changed");
    expect(await pack(path("two"), path("third.sh"))).not.toEqual(first);
    expect((await readdir(scratch.path)).toSorted()).toEqual([
      "first.sh",
      "one",
      "second.sh",
      "third.sh",
      "two",
    ]);
  });

  test("prints its version, whatever characters that has", async () => {
    await using scratch = await scratchFolder();
    const version = `1 {x} 'q' "d" é \\ $(id) 🙂`;
    const yaml = `name: small\nversion: ${JSON.stringify(version)}\ndescription: "${"0".repeat(64)}"\n`;
    await pack(
      await writePlatform(join(scratch.path, "small"), { "platform.yaml": yaml }),
      join(scratch.path, "a.sh"),
    );
    const { status, stdout } = await runArtifact(
      join(scratch.path, "a.sh"),
      "--version",
      scratch.path,
    );
    expect({ status, found: JSON.parse(stdout) as unknown }).toEqual({
      status: 0,
      found: { variant: "none", version, name: "small" },
    });
    expect(stdout.match(/[{}]/g)).toHaveLength(2);
    expect(() => parseArtifactVersion(stdout)).not.toThrow("neither a version nor a variant");
    expect((await runArtifact(join(scratch.path, "a.sh"), "--help", scratch.path)).status).toBe(2);
  });

  test("replaces a file, but nothing else, and leaves nothing after a failure", async () => {
    await using scratch = await scratchFolder();
    const path = (name: string): string => join(scratch.path, name);
    const folder = await writePlatform(path("small"), { large: "x".repeat(50_000) });
    const platform = await read(folder);
    const written = async (file: string) => packFolder({ folder, platform, file }, neverAborted);
    await writeFile(path("a.sh"), "old");
    await mkdir(path("folder"));
    await written(path("a.sh"));
    expect((await stat(path("a.sh"))).size).toBeGreaterThan(3_000);
    for (const file of [path("folder"), path("no/a.sh"), "/dev/null"])
      expect(await failureOf(written(file))).toMatchObject({ id: "bad-usage" });
    await truncate(path("small/large"), 10);
    // Another try with the same list of files would fail as well.
    expect(await failureOf(written(path("b.sh")))).toMatchObject({
      id: "transfer-failed",
      transient: false,
    });
    const aborted = AbortSignal.abort(new Error("interrupted"));
    const interrupted = await writeArtifact(platform, path("b.sh"), aborted).catch(String);
    expect(interrupted).toBe("Error: interrupted");
    expect((await readdir(scratch.path)).toSorted()).toEqual(["a.sh", "folder", "small"]);
  });

  test("is not written into its own folder, not even through a link", async () => {
    await using scratch = await scratchFolder();
    const folder = await writePlatform(join(scratch.path, "small"), { "a/b": "x" });
    const platform = await read(folder);
    await symlink(folder, join(scratch.path, "link"));
    for (const file of [
      join(folder, "a.sh"),
      join(folder, "a/a.sh"),
      join(scratch.path, "link/a.sh"),
    ]) {
      const failure = await failureOf(packFolder({ folder, platform, file }, neverAborted));
      expect(failure).toMatchObject({
        id: "bad-usage",
        message: expect.stringContaining("a part of the platform"),
      });
    }
  });

  test("a large file takes no memory", async () => {
    await using scratch = await scratchFolder();
    const folder = await writePlatform(join(scratch.path, "small"), { large: "x" });
    await truncate(join(folder, "large"), 300_000_000);
    const before = process.memoryUsage().rss;
    await pack(folder, join(scratch.path, "a.sh"));
    expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000);
  });
});

const configuration = {
  bootstrap_url: "http://10.0.0.1:18080/0123456789abcdef",
  cluster_name: "it's",
  exhibitor_storage_backend: "static",
  master_discovery: "static",
  master_list: ["10.0.0.1"],
  agent_list: ["10.0.0.2", "10.0.0.3"],
  public_agent_list: [],
  resolvers: ["10.0.0.9"],
  extra_config: { colour: { shade: "é", depth: 12345678901 } },
};

async function generator(folder: string, text: string) {
  await mkdir(join(folder, "genconf"), { recursive: true });
  await writeFile(join(folder, "genconf/config.yaml"), text);
  await writeFile(join(folder, "genconf/ip-detect"), "#!/bin/sh\necho 10.0.0.2\n");
  await pack(await writePlatform(join(folder, "small")), join(folder, "a.sh"));
  return {
    generate: async (python?: string) =>
      runArtifact(join(folder, "a.sh"), "--genconf", folder, python),
    served: async (name: string) => readFile(join(folder, "genconf/serve", name), "utf8"),
  };
}

describe.each(pythons)("--genconf with %s", (python) => {
  test("writes what the nodes install from, and keeps the secret", async () => {
    await using scratch = await scratchFolder();
    const { generate, served } = await generator(scratch.path, JSON.stringify(configuration));
    expect(await generate(python)).toEqual({ status: 0, stdout: "", stderr: "" });
    const folder = join(scratch.path, "genconf/serve");
    expect((await readdir(folder)).toSorted()).toEqual(["platform.tar.gz", "platform_install.sh"]);
    expect((await stat(join(folder, "platform_install.sh"))).mode & 0o777).toBe(0o600);
    /** One of the values in front of the script's own text. */
    const value = async (name: string): Promise<string> => {
      const [values = ""] = (await served("platform_install.sh")).split("\nset -euo pipefail\n");
      return Bun.$`bash -c ${`${values}\nprintf %s "$${name}"`}`.text();
    };
    expect(JSON.parse(await value("CONFIG_JSON"))).toEqual(configuration.extra_config);
    expect(await value("ENVIRONMENT")).toContain("export CLUSTER_ID='it'\\''s'\n");
    expect(await value("NODES")).toBe("master 10.0.0.1\nagent 10.0.0.2 10.0.0.3\npublic_agent \n");
    const secret = await value("SECRET");
    expect(secret).toMatch(/^[0-9a-f]{64}$/);
    const smaller = { ...configuration, agent_list: ["10.0.0.4"] };
    await writeFile(join(scratch.path, "genconf/config.yaml"), JSON.stringify(smaller));
    expect(await generate(python)).toMatchObject({ status: 0 });
    expect(await value("SECRET")).toBe(secret);
    expect(await value("NODES")).toContain("\nagent 10.0.0.4\n");
  });

  test.each<readonly [string, string, string]>([
    ["a list", "[]", "config.yaml: is not a mapping\n"],
    ["YAML", "a: 1", "config.yaml: is not JSON\n"],
    [
      "wrong values",
      JSON.stringify({
        master_list: [],
        agent_list: [1],
        public_agent_list: "x",
        bootstrap_url: 'http://a" b',
        cluster_name: "",
      }),
      "bootstrap_url: must be a URL (http)\ncluster_name: must be one line of text\nmaster_list: must not be empty\n" +
        "agent_list: must be a list of IPv4 addresses\npublic_agent_list: must be a list of IPv4 addresses\n",
    ],
    [
      "a repeated address",
      JSON.stringify({ ...configuration, agent_list: ["10.0.0.1"] }),
      "agent_list: 10.0.0.1 is listed twice\n",
    ],
  ])("refuses %s", async (_, text, stderr) => {
    await using scratch = await scratchFolder();
    const { generate } = await generator(scratch.path, text);
    expect(await generate(python)).toEqual({ status: 1, stdout: "", stderr });
  });

  test("an artifact of which a part is missing says so", async () => {
    await using scratch = await scratchFolder();
    const { generate } = await generator(scratch.path, JSON.stringify(configuration));
    const { size } = await stat(join(scratch.path, "a.sh"));
    await truncate(join(scratch.path, "a.sh"), size - 1);
    const { status, stderr } = await generate(python);
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: "artifact: this file is damaged or incomplete; download it again\n",
    });
  });
});
