/** Pressure on a container within its limits: it shows, and everything is given back when it heals. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeEmptyPlatform } from "./support/empty-platform.ts";
import { type TestContainers, nodeImage, startTestContainers } from "./support/test-containers.ts";

const state: { containers?: TestContainers } = {};
const containers = (): TestContainers => state.containers!;
const id = (): string => containers().id("pressure");
const words = (line: string): readonly string[] => [...line.split(" "), "-c", id()];
const fault = (line: string) => containers().run(["fault", ...words(line)]);
const onNode = async (line: string): Promise<string> => {
  const { status, stdout, stderr } = await containers().run([
    "run",
    "-c",
    id(),
    "--no-test-env",
    line,
  ]);
  expect(status, stderr).toBe(0);
  return stdout.trim();
};

beforeAll(async () => {
  state.containers = await startTestContainers();
  const platform = await writeEmptyPlatform(containers().folder);
  const create = words(
    "create --wait --cpus 0.5 --memory 512m --masters 1 --agents 0 --public-agents 0",
  );
  const created = await containers().run([...create, "--node-image", nodeImage, platform]);
  expect(created.status, created.stderr).toBe(0);
});

afterAll(async () => {
  await state.containers?.run(["destroy", ...words("--yes")]);
  await state.containers?.[Symbol.asyncDispose]();
});

const megabytesOfTmpfs =
  "df --output=used -BM -t tmpfs | tail -n +2 | awk '{ sum += $1 } END { print sum }'";
const unitsOfFaults = "systemctl list-units --no-legend 'cluster-e2e-fault-*' | wc -l";

test("memory is filled and processors are busy, of what the container may have, until it heals", async () => {
  const before = Number(await onNode(megabytesOfTmpfs));
  const begun = await fault("pressure master_0 --cpu 80% --memory 70% --for 10m");
  expect(begun.status, begun.stderr).toBe(0);
  const [, memory] = /(\d+)% of the memory are used/.exec(begun.stderr) ?? [];
  expect(Number(memory)).toBeWithin(60, 81);
  expect(begun.stderr).toMatch(
    /The fault shows \(80% of the processors and 70% of the memory used on master_0\): \d+% of/,
  );
  // Most of 70% of 512 MB; the programs of the node have the rest.
  expect(Number(await onNode(megabytesOfTmpfs)) - before).toBeWithin(100, 360);
  expect(await onNode(unitsOfFaults)).toBe("1");
  expect(await fault("heal")).toMatchObject({ status: 0, stdout: begun.stdout });
  expect(Number(await onNode(megabytesOfTmpfs)) - before).toBeWithin(-50, 50);
  expect([
    await onNode(unitsOfFaults),
    await onNode("ls /run/cluster-e2e-faults/*.memory 2>&1 | wc -l"),
  ]).toEqual(["0", "1"]);
});

test("more memory than its programs leave is refused, and nothing is filled", async () => {
  const before = Number(await onNode(megabytesOfTmpfs));
  const little = await fault("pressure master_0 --memory 1%");
  expect(little).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("its programs use as much of its memory already"),
  });
  expect(Number(await onNode(megabytesOfTmpfs)) - before).toBeWithin(-50, 50);
});
