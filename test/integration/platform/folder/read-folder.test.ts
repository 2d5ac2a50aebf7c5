import { describe, expect, test } from "bun:test";
import { chmod, link, mkdir, symlink, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { unmarked } from "../../../../src/outside-text.ts";
import {
  platformFolderOf,
  readPlatformFolder,
} from "../../../../src/platform/folder/read-folder.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { smallPlatform, writePlatform } from "../../../support/platform-folder.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const testPlatforms = join(import.meta.dir, "../../../platforms");

async function problemsOf(
  changes: Readonly<Record<string, string | undefined>>,
  change: (folder: string) => Promise<unknown> = async () => {},
): Promise<readonly string[] | undefined> {
  await using scratch = await scratchFolder();
  const folder = await writePlatform(join(scratch.path, "small"), changes);
  await change(folder);
  const { problems } = await readPlatformFolder(folder, neverAborted);
  return problems?.map((problem) => unmarked(problem).replaceAll(folder, "small"));
}

describe("a platform's folder", () => {
  test.each([...new Bun.Glob("*/platform.yaml").scanSync(testPlatforms)])(
    "the tests' own %s is one",
    async (file) => {
      const folder = join(testPlatforms, dirname(file));
      expect((await readPlatformFolder(folder, neverAborted)).problems).toBeUndefined();
    },
  );

  test("its files are sorted, and their modes have only the run bit", async () => {
    await using scratch = await scratchFolder();
    const folder = await writePlatform(scratch.path, {
      "tests/b.sh": "#!/bin/sh\n",
      "tests/a": "x",
      ".hidden": "",
      "é/ü": "y",
    });
    await mkdir(join(folder, ".git"));
    await writeFile(join(folder, ".git/HEAD"), "x");
    await writeFile(join(folder, "tests/.DS_Store"), "x");
    await symlink("tests/a", join(folder, "link"));
    await chmod(join(folder, "tests/a"), 0o600);
    await chmod(join(folder, "install"), 0o700);
    const { value } = await readPlatformFolder(folder, neverAborted);
    expect(
      value?.files.map(({ path, mode, sizeBytes }) => `${path} ${mode.toString(8)} ${sizeBytes}`),
    ).toEqual([
      ".hidden 644 0",
      "check 755 17",
      "install 755 17",
      "link 644 1",
      "platform.yaml 644 27",
      "tests/a 644 1",
      "tests/b.sh 755 10",
      "é/ü 644 1",
    ]);
    expect(value?.facts.name).toBe("small");
  });

  test("in memory it is the same", async () => {
    await using scratch = await scratchFolder();
    const { value: onDisk } = await readPlatformFolder(
      await writePlatform(scratch.path),
      neverAborted,
    );
    const files = Object.entries(smallPlatform).map(([path, text]) => ({
      path,
      text,
      mode: path.endsWith("yaml") ? 0o644 : 0o755,
    }));
    const { value: inMemory } = await platformFolderOf("example:small", files);
    const plain = (folder: typeof onDisk) => ({
      ...folder,
      files: folder?.files.map(({ source: _, ...file }) => file),
    });
    expect(plain(inMemory)).toEqual(plain(onDisk));
    const broken = await platformFolderOf("example:small", files.slice(1));
    expect(broken.problems).toEqual(["example:small/platform.yaml: is missing"]);
  });

  const notProgram = "is not a program: it begins neither with #! nor as Linux executables do";
  const outsideLink = "small/key is a symbolic link to /etc/hostname, outside small.";

  type Change = (folder: string) => Promise<unknown>;
  type Row = readonly [
    name: string,
    changes: Readonly<Record<string, string | undefined>>,
    problem: string,
    change?: Change,
  ];
  const rows: readonly Row[] = [
    ["no platform.yaml", { "platform.yaml": undefined }, "small/platform.yaml: is missing"],
    [
      "a platform.yml",
      { "platform.yaml": undefined, "platform.yml": "name: small" },
      "small/platform.yaml: is missing; rename platform.yml",
    ],
    [
      "a bad platform.yaml",
      { "platform.yaml": "name: small" },
      "small/platform.yaml: version: is missing",
    ],
    [
      "a large platform.yaml",
      { "platform.yaml": "#".repeat(70_000) },
      "small/platform.yaml: is larger than 64 KiB",
    ],
    [
      "a platform.yaml in Latin 1",
      {},
      "small/platform.yaml: is not UTF-8 text",
      async (folder) => writeFile(join(folder, "platform.yaml"), Buffer.from([0xe9, 0xe9])),
    ],
    ["no install", { install: undefined }, "small/install: is missing"],
    ["no check", { check: undefined }, "small/check: is missing"],
    ["an empty install", { install: "" }, "small/install: is empty"],
    [
      "an install without run bit",
      {},
      "small/install: is not executable; run chmod +x on it",
      async (folder) => chmod(join(folder, "install"), 0o644),
    ],
    [
      "an install without #!",
      {},
      `small/install: ${notProgram}`,
      async (folder) => writeFile(join(folder, "install"), "echo\n"),
    ],
    [
      "an install with half a #!",
      { install: "#!sh\nexit 0\n" },
      "small/install: begins with #!, but without the path of a program that runs it, such as #!/bin/sh",
    ],
    [
      "a name that is not UTF-8",
      {},
      "Cannot read small/caf\uFFFD.txt: its name is not UTF-8.",
      async (folder) =>
        writeFile(
          Buffer.concat([Buffer.from(`${folder}/caf`), Buffer.from([0xe9]), Buffer.from(".txt")]),
          "",
        ),
    ],
    [
      "a check from Windows",
      { check: "#!/bin/sh\r\nexit 0\r\n" },
      "small/check: has Windows line endings (CRLF); save it with Unix line endings (LF)",
    ],
    [
      "an upgrade without run bit",
      { upgrade: "exit 0" },
      "small/upgrade: is not executable; run chmod +x on it",
    ],
    [
      "an install that is a folder",
      { install: undefined, "install/main": "x" },
      "small/install: is a folder, not a program",
    ],
    ["tests that are a file", { tests: "x" }, "small/tests: is not a folder"],
    [
      "a link that leads out",
      {},
      outsideLink,
      async (folder) => symlink("/etc/hostname", join(folder, "key")),
    ],
    [
      "a link that leads out, in a folder of something else",
      { "platform.yaml": undefined },
      "small/platform.yaml: is missing",
      async (folder) => symlink("/etc/hostname", join(folder, "key")),
    ],
    [
      "a dangling link",
      {},
      "small/key is a broken symbolic link.",
      async (folder) => symlink("nothing", join(folder, "key")),
    ],
    ["a name with a line break", { "a\nb": "x" }, 'small: the name "a\\nb" has control characters'],
    [
      "a socket or pipe",
      {},
      "small/pipe is neither a file nor a folder.",
      async (folder) => Bun.$`mkfifo ${join(folder, "pipe")}`,
    ],
    [
      "more than 1 GB",
      { large: "x" },
      "small: has 1.10 GB; at most 1 GB is allowed",
      async (folder) => truncate(join(folder, "large"), 1.1e9),
    ],
    [
      "too many files",
      { a: "x" },
      "small: has 10004 files; at most 10000 are allowed",
      async (folder) =>
        Promise.all(
          Array.from({ length: 10_000 }, (_, index) =>
            link(join(folder, "a"), join(folder, `a${index}`)),
          ),
        ),
    ],
  ];

  test.each(rows.map((row) => [row[0], row] as const))(
    "%s",
    async (_, [, changes, problem, change]) => {
      expect(await problemsOf(changes, change)).toEqual([problem]);
    },
  );

  test("everything is reported at once", async () => {
    const found = await problemsOf({
      "platform.yaml": "name: S",
      install: undefined,
      check: "",
      tests: "x",
    });
    expect(found).toHaveLength(5);
  });

  test("a folder that doesn't exist, and a file", async () => {
    await using scratch = await scratchFolder();
    const folder = join(scratch.path, "x");
    expect((await readPlatformFolder(folder, neverAborted)).problems).toEqual([
      `${folder} does not exist`,
    ]);
    await writeFile(folder, "");
    expect((await readPlatformFolder(folder, neverAborted)).problems).toEqual([
      `${folder} is not a folder`,
    ]);
  });
});
