/** Acts inside the local cloud's machines, which are Docker containers, without the product. */
import type { TestCloud } from "./test-cloud.ts";
import { until } from "../../support/until.ts";
import { docker } from "./test-containers.ts";

/** For `until`: how long machines may take that are asked over `docker exec`. */
export const patient = { limitMs: 600_000, everyMs: 250 };

export interface Inside {
  readonly containerId: string;
  /** `master`, `agent`, `public_agent`. */
  readonly role: string;
  /** Runs shell lines in the machine; resolves with their status and all that they print. */
  shell(lines: string, options?: { readonly user?: string; readonly stdin?: string }): Promise<Ran>;
}

interface Ran {
  readonly status: number;
  readonly output: string;
}

/** The cluster's machines as soon as all of them run, which is before anything is installed on them. */
export async function insideMachines(
  cloud: TestCloud,
  clusterId: string,
  count: number,
): Promise<readonly Inside[]> {
  for (let tries = 0; tries < 600; tries += 1) {
    const machines = (await cloud.machines()).filter(
      ({ tags }) => tags["cluster-e2e:cluster-id"] === clusterId,
    );
    const found = machines.flatMap(({ containerId, tags }) =>
      containerId === undefined ? [] : [inside(containerId, tags["cluster-e2e:role"] ?? "")],
    );
    if (found.length === count && (await areRunning(found))) return found;
    await Bun.sleep(100);
  }
  throw new Error(`the ${count} machines of ${clusterId} did not start in a minute`);
}

async function areRunning(machines: readonly Inside[]): Promise<boolean> {
  const words = [
    "inspect",
    "--format={{.State.Running}}",
    ...machines.map(({ containerId }) => containerId),
  ];
  return (await docker(words)).split("\n").every((line) => line === "true");
}

const inside = (containerId: string, role: string): Inside => ({
  containerId,
  role,
  shell: async (lines, { user = "root", stdin = "" } = {}) => {
    const child = Bun.spawn(
      ["docker", "exec", "-i", "--user", user, containerId, "sh", "-c", lines],
      {
        stdin: new Blob([stdin]),
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const [status, ...texts] = await Promise.all([
      child.exited,
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    return { status, output: texts.join("") };
  },
});

/**
 * From now on curl waits on this machine until the file /hold is gone: its installation stands still, however often the
 * machine reboots.
 */
export const holdInstallation = async (machine: Inside): Promise<Ran> =>
  machine.shell(`cat >/usr/local/bin/curl && chmod 755 /usr/local/bin/curl && : >/hold`, {
    stdin: '#!/bin/sh\nwhile [ -e /hold ]; do sleep 0.1; done\nexec /usr/bin/curl "$@"\n',
  });

export const releaseInstallation = async (machine: Inside): Promise<Ran> =>
  machine.shell("rm /hold");

/** Resolves when the machine runs again. */
export async function reboot(machine: Inside): Promise<void> {
  const bootId = async (): Promise<string> => (await machine.shell("stat -c %Y%Z /proc/1")).output;
  const before = await bootId();
  await machine.shell("systemctl reboot");
  await until(
    "the machine is back",
    async () => {
      const now = await bootId();
      const state = (await machine.shell("systemctl is-system-running")).output.trim();
      return /^\d+\n$/.test(now) && now !== before && ["running", "degraded"].includes(state);
    },
    patient,
  );
}
