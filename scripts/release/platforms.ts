import type { Build } from "bun";

export interface Platform {
  /** As in the names of the files of a release. */
  readonly name: string;
  readonly os: "linux" | "darwin";
  /** As package registries and Bun's own packages call it. */
  readonly cpu: "x64" | "arm64";
  readonly target: Build.CompileTarget;
  /** The package that holds Bun itself for this platform; `bun.lock` has its checksum. */
  readonly basePackage: string;
}

/** All that a release is made for. Bun's package for x64 on Linux is the baseline one (no AVX2): there is no other since 1.4. */
export const platforms: readonly Platform[] = [
  platform("linux", "x64", "bun-linux-x64-baseline"),
  platform("linux", "arm64", "bun-linux-arm64"),
  platform("darwin", "x64", "bun-darwin-x64"),
  platform("darwin", "arm64", "bun-darwin-arm64"),
];

function platform(os: Platform["os"], cpu: Platform["cpu"], target: Build.CompileTarget): Platform {
  const basePackage = `@oven/bun-${os}-${cpu === "arm64" ? "aarch64" : cpu}`;
  return { name: `${os}-${cpu}`, os, cpu, target, basePackage };
}

/** The one that this process runs on, if a release has it. */
export const ownPlatform = (): Platform | undefined =>
  platforms.find(({ os, cpu }) => os === process.platform && cpu === process.arch);
