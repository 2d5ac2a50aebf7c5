import { ClusterError } from "../../errors.ts";
import { shellText } from "../../ssh/shell-text.ts";
import type { Engine } from "./engine/engine.ts";
import { lookBriefly } from "./engine/run-briefly.ts";
import { builtImages } from "./launch/node-image.ts";
import script from "./look-at-machine.sh" with { type: "text" };

/** What a container sees of the computer that its engine runs on. A fact that it didn't find is missing. */
export interface EngineMachine {
  /** Where the engine keeps images and containers, whichever store it uses. */
  readonly freeBytes?: number;
  readonly inotifyInstances?: string;
  /** Whether cgroups 1 have the tree that the nodes' systemd needs. */
  readonly hasSystemdTree?: boolean;
}

/**
 * Looks with a container of a node image, which ends at once. Undefined as long as there is no such
 * image. An engine that refuses it shows nothing.
 */
export async function lookAtMachine(
  engine: Engine,
  signal: AbortSignal,
): Promise<EngineMachine | undefined> {
  const image = await ownImage(engine, signal);
  if (image === undefined) return undefined;
  const look = {
    image,
    options: ["--volume=/sys/fs/cgroup:/engine-cgroup:ro"],
    argv: ["/bin/sh", "-c", shellText(script).trim()],
  } as const;
  return readMachine(
    await lookBriefly(engine, look, signal).catch((error: unknown) => {
      if (error instanceof ClusterError && !signal.aborted) return "";
      throw error;
    }),
  );
}

export function readMachine(text: string): EngineMachine {
  const lines = text.split("\n").map((line) => line.trim().split(/\s+/));
  const factOf = (name: string): readonly string[] => lines.find(([word]) => word === name) ?? [];
  // The file system's name comes first. It may have spaces, the mount point doesn't.
  const kilobytes = factOf("space").at(-3) ?? "";
  const [, inotifyInstances = ""] = factOf("inotify");
  const [, systemd] = factOf("systemd");
  return {
    ...(isNumber(kilobytes) && { freeBytes: Number(kilobytes) * 1024 }),
    ...(isNumber(inotifyInstances) && { inotifyInstances }),
    ...(systemd !== undefined && { hasSystemdTree: systemd === "yes" }),
  };
}

const isNumber = (text: string): boolean => /^\d{1,15}$/.test(text);

/** An image that this program has built; undefined if there is none. */
export async function ownImage(engine: Engine, signal: AbortSignal): Promise<string | undefined> {
  const words = [
    "images",
    `--filter=reference=${builtImages}`,
    "--format={{.Repository}}:{{.Tag}}",
  ];
  // Podman lists all names of the image, even if only one was asked for.
  return (await engine.ask({ words }, signal))
    .split("\n")
    .find((name) => name.startsWith(`${builtImages}:`));
}
