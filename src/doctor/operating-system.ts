import { type Check, localLimitMs, type Outcome, pass, warn } from "../model/check.ts";

/** The facts that node:os reports about this machine. */
export interface OperatingSystem {
  /** Like `process.platform`: `linux`, `darwin`. */
  readonly platform: string;
  /** For example `6.1.0-18-amd64`. */
  readonly release: string;
  /** For example `x64`. */
  readonly architecture: string;
}

interface SupportedSystem {
  readonly name: string;
  /** The oldest supported kernel release. */
  readonly least: readonly [number, number];
  readonly leastText: string;
}

/** https://bun.com/docs/installation#system-requirements */
const supportedSystems: Readonly<Record<string, SupportedSystem>> = {
  linux: { name: "Linux", least: [5, 1], leastText: "5.1" },
  darwin: { name: "macOS (Darwin)", least: [22, 0], leastText: "22.0 (macOS 13)" },
};

export function operatingSystemCheck(system: OperatingSystem): Check {
  return { name: "operating system", limitMs: localLimitMs, run: () => Promise.resolve(judge(system)) };
}

function judge({ platform, release, architecture }: OperatingSystem): Outcome {
  const supported = supportedSystems[platform];
  if (supported === undefined) {
    return warn(`This program is tested on Linux and macOS, not on ${platform}.`, "Use a virtual machine with Linux.");
  }
  const { name, least, leastText } = supported;
  if (isOlder(release, least)) {
    return warn(
      `${name} ${release} is older than ${leastText}, the oldest release that this program's runtime, Bun, supports.`,
      "Use a newer system: here, commands may fail in untested ways.",
    );
  }
  return pass(`${name} ${release} on ${architecture}`);
}

function isOlder(release: string, least: readonly [number, number]): boolean {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(release) ?? [];
  if (major === undefined || minor === undefined) return false;
  return Number(major) < least[0] || (Number(major) === least[0] && Number(minor) < least[1]);
}
