/** Chaos finds a planted bug, and shrinking names the one fault of several that makes it show. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { repository } from "./support/executable.ts";
import { type TestContainers, startTestContainers } from "./support/test-containers.ts";

const limitMs = 1_800_000;
const state: { containers?: TestContainers; image?: string } = {};
const containers = (): TestContainers => state.containers!;
const id = (): string => containers().id("shrink");
/** Only the third fault loses what is in memory. */
const chaos = "seed=96,every=10s,kinds=partition,process";

beforeAll(async () => {
  state.containers = await startTestContainers();
  state.image = await Bun.$`${join(repository, "test/machine-image/with-packages")} faults nftables`
    .quiet()
    .text();
}, limitMs);

afterAll(async () => {
  await state.containers?.[Symbol.asyncDispose]();
});

/** The command ends at the first loss, or after a time in which even a busy computer has begun the third fault. */
const once = async (...words: readonly string[]) => {
  const own = ["once", "-c", id(), "--node-image", state.image!.trim(), ...words];
  const command = [join(import.meta.dir, "lossy-counter"), "--", "./counter-test", "150"];
  return containers().run([...own, ...command], { limitMs });
};

test(
  "a write that a killed service loses is found, and shrinking names the kill alone",
  async () => {
    const { status, stdout, stderr } = await once("--chaos", `${chaos},unit=counter`, "--shrink=9");
    expect(status, stderr).toBe(1);
    expect(stdout + stderr).toMatch(/has lost \d+ of \d+ acknowledged numbers/);
    const [first = ""] = stderr.split("Trying without any fault.");
    for (const fault of ["1.*partition on", "2.*signal stop", "3.*signal kill"])
      expect(first).toMatch(new RegExp(`Fault ${fault}`));
    const only = `${chaos},targets=one,minority,only=3,unit=counter`;
    expect(stderr.replaceAll(/\n */g, " ")).toMatch(
      new RegExp(`smallest plan that still fails has 1 fault of \\d. To repeat.* --chaos ${only}`),
    );
    const again = await once("--chaos", only);
    expect(again.status, again.stderr).toBe(1);
    expect(again.stderr.match(/Fault \d.*/g)).toEqual([
      expect.stringMatching(/^Fault 3\..* process on agent_1 .*signal kill/),
    ]);
    expect(await containers().things(id())).toEqual([]);
  },
  limitMs,
);
