import type { Build } from "bun";

export interface Platform {
  /** The platform's name in the files of a release. */
  readonly name: string;
  readonly os: "linux" | "darwin";
  /** The name in package registries and Bun's packages. */
  readonly cpu: "x64" | "arm64";
  readonly target: Build.CompileTarget;
  /** The package that contains Bun for this platform. `bun.lock` has its checksum. */
  readonly basePackage: string;
}

/** All platforms of a release. Since 1.4, Bun's only package for x64 on Linux is the baseline one, without AVX2. */
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

/** The platform of this process, if releases support it. */
export const ownPlatform = (): Platform | undefined =>
  platforms.find(({ os, cpu }) => os === process.platform && cpu === process.arch);
