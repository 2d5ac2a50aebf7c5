/** A program that we start, such as QEMU, may be taken over. It must find no credentials in its environment. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmod, readFile } from "node:fs/promises";
import { join } from "node:path";
import { run } from "./support/executable.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";
import { startTestVms } from "./support/test-vms.ts";
import type { TestVms } from "./support/test-vms.ts";

const secret = "an-environment-s-secret";
const ownSecrets = { CLOUD_ACCESS_KEY_ID: secret, CLOUD_SECRET_ACCESS_KEY: secret, CLOUD_SESSION_TOKEN: secret };
const otherSecrets = { AWS_SECRET_ACCESS_KEY: secret, GITHUB_TOKEN: secret, DATABASE_PASSWORD: secret };

const state: { vms?: TestVms } = {};
const vms = (): TestVms => state.vms!;
const missing = Bun.which("qemu-system-x86_64") === null ? "no qemu-system-x86_64 here" : undefined;

beforeAll(async () => {
  state.vms = await startTestVms();
}, 60_000);

afterAll(async () => {
  await state.vms?.[Symbol.asyncDispose]();
}, 60_000);

test.skipIf(missing !== undefined)(
  `whoever takes over a QEMU finds nothing of the user's in it, and is behind a filter of system calls (${missing ?? "here"})`,
  async () => {
    const id = vms().id("hostile");
    const [image, artifact] = [join(vms().folder, "empty.img"), join(vms().folder, "idle.sh")];
    await Bun.write(image, new Uint8Array(1_048_576));
    await Bun.write(artifact, "#!/bin/bash\n# variant: oss\n");
    const options = "--variant oss --agents 1 --public-agents 0 --memory 256 --cpus 1 --disk-size 1g --accelerator tcg";
    const words = ["create", "-v", ...options.split(" "), "--image", image, "-c", id, artifact];
    const creating = vms().start(words, { ...ownSecrets, ...otherSecrets });
    await creating.said("Start virtual machines: done");
    const machines = await vms().machines(id);
    expect([...machines.keys()].toSorted()).toEqual(["agent_0", "master_0", "network"]);
    for (const pid of machines.values()) {
      const environment = await readFile(`/proc/${pid}/environ`, "utf8");
      expect(environment).toContain("PATH=");
      expect(environment).not.toContain(secret);
      expect(await readFile(`/proc/${pid}/status`, "utf8")).toMatch(/^Seccomp:\s+2$/m);
    }
    creating.interrupt("SIGINT");
    await creating.ended;
    expect((await vms().machines(id)).size).toBe(0);
  },
  120_000,
);

test("a container engine is given the user's settings, and none of this program's credentials", async () => {
  await using folder = await temporaryFolder();
  const [docker, seen] = [join(folder.path, "docker"), join(folder.path, "seen")];
  await Bun.write(docker, `#!/bin/sh\nenv >>'${seen}'\nexit 1\n`);
  await chmod(docker, 0o755);
  const environment = {
    ...ownSecrets,
    PATH: `${folder.path}:/usr/bin:/bin`,
    XDG_STATE_HOME: folder.path,
    DOCKER_HOST: "unix:///nowhere",
  };
  await run("cluster-container", ["list", "--engine", "docker"], { environment });
  const given = await readFile(seen, "utf8");
  expect(given).toContain("DOCKER_HOST=unix:///nowhere");
  expect(given).not.toContain(secret);
});
