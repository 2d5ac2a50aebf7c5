/** `sync` to a master on which the platform is installed. */
import { describe, expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { failureOf } from "../../support/failure-of.ts";
import { machinesLack } from "../../support/install-machine.ts";
import { installedCluster } from "./installed-cluster.ts";

describe.skipIf(machinesLack !== undefined)(`a sync (${machinesLack ?? "here"})`, () => {
  test("prints for each master how much was sent, and the seconds that it took", async () => {
    await using opened = await installedCluster();
    const [master] = opened.machines.machines;
    await master!.write("opt/cluster/active/integration-test/test_old.py", "old\n");
    const tests = join(opened.folder, "checkout/packages/integration-test/extra");
    await mkdir(tests, { recursive: true });
    await writeFile(join(tests, "test_new.py"), "new\n");
    const first = await opened.run("sync checkout");
    expect(await master!.read("opt/cluster/active/integration-test/test_new.py")).toBe("new\n");
    const [report] = first.data!["masters"] as {
      files: number;
      sentFiles: number;
      sentBytes: number;
    }[];
    expect(report).toMatchObject({ node: "master_0", sentFiles: 1 });
    const seconds = Number(first.data?.["seconds"]);
    expect(seconds).toBeWithin(0, 3600);
    expect(seconds).toBe(Math.round(seconds * 10) / 10);
    expect(first.stdout).toBe(
      `master_0: ${report!.files} file, 1 sent (${report!.sentBytes} bytes)\n${seconds} s`,
    );
    const second = await opened.run("sync checkout");
    expect(second.stdout).toStartWith(`master_0: ${report!.files} file, 0 sent (0 bytes)\n`);
  });

  test("without a checkout, the current folder must be one", async () => {
    await using opened = await installedCluster();
    const failure = await failureOf(opened.run("sync"));
    expect(failure).toMatchObject({
      id: "bad-usage",
      hint: expect.stringContaining("CHECKOUT_DIR"),
    });
  });
});
