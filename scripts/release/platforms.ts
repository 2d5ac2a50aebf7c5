import type { Build } from "bun";

export interface Platform {
  /** The platform's name in the files of a release. */
  readonly name: string;
  readonly os: "linux" | "darwin";
  /** The name in package registries and Bun's packages. */
  readonly cpu: "x64" | "arm64";
  /** The C library; none on macOS, which has only one. */
  readonly libc: "glibc" | "musl" | undefined;
  readonly target: Build.CompileTarget;
  /** The package that contains Bun for this platform. `bun.lock` has its checksum. */
  readonly basePackage: string;
}

/** All platforms of a release. Since 1.4, Bun's only package for x64 on Linux is the baseline one, without AVX2. */
export const platforms: readonly Platform[] = [
  linux("x64", "glibc", "bun-linux-x64-baseline"),
  linux("arm64", "glibc", "bun-linux-arm64"),
  linux("x64", "musl", "bun-linux-x64-baseline-musl"),
  linux("arm64", "musl", "bun-linux-arm64-musl"),
  darwin("x64", "bun-darwin-x64"),
  darwin("arm64", "bun-darwin-arm64"),
];

function linux(
  cpu: Platform["cpu"],
  libc: "glibc" | "musl",
  target: Build.CompileTarget,
): Platform {
  const end = libc === "musl" ? "-musl" : "";
  const basePackage = `@oven/bun-linux-${processor(cpu)}${end}`;
  return { name: `linux-${cpu}${end}`, os: "linux", cpu, libc, target, basePackage };
}

function darwin(cpu: Platform["cpu"], target: Build.CompileTarget): Platform {
  const basePackage = `@oven/bun-darwin-${processor(cpu)}`;
  return { name: `darwin-${cpu}`, os: "darwin", cpu, libc: undefined, target, basePackage };
}

/** The platform of this process, if releases support it. */
export const ownPlatform = (): Platform | undefined =>
  platforms.find(
    ({ os, cpu, libc }) => os === process.platform && cpu === process.arch && libc === ownLibc(),
  );

function ownLibc(): Platform["libc"] {
  if (process.platform !== "linux") return undefined;
  const { header } = process.report.getReport() as {
    readonly header: { readonly glibcVersionRuntime?: string };
  };
  return header.glibcVersionRuntime === undefined ? "musl" : "glibc";
}

function processor(cpu: Platform["cpu"]): string {
  return cpu === "arm64" ? "aarch64" : cpu;
}
