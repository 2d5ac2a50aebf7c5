/** A release's checks of its executables. */
import { expect, test } from "bun:test";
import { copyFile, mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { buildPlatform } from "../../../../scripts/release/executables.ts";
import { ownPlatform } from "../../../../scripts/release/platforms.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const repository = join(import.meta.dir, "..", "..", "..", "..");
const platform = ownPlatform();

const withSdk =
  'import { EC2Client } from "@aws-sdk/client-ec2";\nconsole.log(String(EC2Client.name === "" ? 2 : 1));\n';
const sources: Readonly<Record<string, string>> = {
  "cluster-good": 'console.log("1");\n',
  "cluster-wrong": 'console.log("2");\n',
  "cluster-large": withSdk,
  "cluster-cloud": withSdk,
};

test.skipIf(platform === undefined)(
  "a wrong version, or the cloud's SDK in a program that isn't for the cloud, is reported",
  async () => {
    await using root = await scratchFolder();
    for (const file of ["package.json", "bun.lock", "bunfig.toml"]) {
      await copyFile(join(repository, file), join(root.path, file));
    }
    await symlink(join(repository, "node_modules"), join(root.path, "node_modules"));
    for (const [name, text] of Object.entries(sources))
      await Bun.write(join(root.path, "src", "bin", `${name}.ts`), text);
    const folder = join(root.path, "work");
    await mkdir(folder);
    const request = {
      root: root.path,
      folder,
      programs: Object.keys(sources),
      version: "1",
      build: async () => ({}),
    };
    const { faults, executables } = await buildPlatform(platform!, request);
    expect(executables.map(({ program }) => program)).toEqual(Object.keys(sources));
    expect(faults).toEqual([
      `cluster-wrong for ${platform!.name} reports the version 2`,
      expect.stringContaining(
        `cluster-large for ${platform!.name} contains packages of the cloud's SDK: @aws-sdk/client-ec2`,
      ),
    ]);
  },
);
