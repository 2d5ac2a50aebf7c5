import { type Check, localLimitMs, pass, warn } from "./check.ts";

/** What node:os tells of this machine. */
export interface OperatingSystem {
  /** As `process.platform`: `linux`, `darwin`. */
  readonly platform: string;
  /** Such as `6.1.0-18-amd64`. */
  readonly release: string;
  /** Such as `x64`. */
  readonly architecture: string;
}

const names: Readonly<Record<string, string>> = { linux: "Linux", darwin: "macOS (Darwin)" };

export function operatingSystemCheck({ platform, release, architecture }: OperatingSystem): Check {
  const name = names[platform];
  const outcome =
    name === undefined
      ? warn(`This program is tried on Linux and macOS, not on ${platform}.`, "Use a virtual machine with Linux.")
      : pass(`${name} ${release} on ${architecture}`);
  return { name: "operating system", limitMs: localLimitMs, run: () => Promise.resolve(outcome) };
}
