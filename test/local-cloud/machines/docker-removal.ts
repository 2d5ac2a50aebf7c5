import { setTimeout as delay } from "node:timers/promises";
import { docker } from "./docker.ts";

const lists = { container: ["ps", "--all"], network: ["network", "ls"] } as const;
const removals = { container: ["rm", "--force", "--volumes"], network: ["network", "rm"] } as const;
const tries = 5;
const pauseMs = 300;

/** Removes every container and network with this label. */
export async function removeAll(label: string): Promise<void> {
  await remove("container", `label=${label}`);
  await remove("network", `label=${label}`);
}

/**
 * Removes all containers or networks that match, and retries until none is left: under load, Docker reports busy devices, removals in progress, and
 * missing objects that it has just listed. Throws an error with Docker's last message if some remain.
 */
export async function remove(kind: "container" | "network", filter: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const found = await docker(
      [...lists[kind], "--quiet", "--no-trunc", `--filter=${filter}`],
      undefined,
    );
    if (found === "") return;
    try {
      await docker([...removals[kind], ...found.split("\n")], undefined);
    } catch (error) {
      if (attempt === tries) throw error;
      await delay(pauseMs);
    }
  }
}
