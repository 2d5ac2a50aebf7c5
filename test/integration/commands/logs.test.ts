/** `logs` on nodes that answer. */
import { expect, test } from "bun:test";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { machinesLack } from "../../support/install-machine.ts";
import { installedCluster } from "./installed-cluster.ts";

test.skipIf(machinesLack !== undefined)(
  `saves the logs in the given folder or in a new one, and prints which (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await installedCluster();
    const given = await opened.run("logs --output-dir ./logs");
    expect(given.stdout).toBe(join(opened.folder, "logs"));
    expect(given.data).toEqual({
      folder: given.stdout,
      files: expect.arrayContaining(["master_0.console.txt"]),
    });
    expect((await readdir(given.stdout)).toSorted()).toEqual(
      (given.data!["files"] as string[]).toSorted(),
    );
    expect(await readFile(join(given.stdout, "master_0.console.txt"), "utf8")).toBe("it booted\n");
    const chosen = await opened.run("logs");
    expect(chosen.stdout).toMatch(
      new RegExp(`^${RegExp.escape(opened.cluster.directory)}/logs-[-\\dTZ]+$`),
    );
    expect(await readdir(chosen.stdout)).toContain("master_0.console.txt");
    expect((await stat(chosen.stdout)).mode & 0o777).toBe(0o700);
  },
);
