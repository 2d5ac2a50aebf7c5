/**
 * Which test files `./scripts/test` leaves to `./scripts/test all`, and which files begin first. A file belongs to a group by what it imports, not by
 * its name. test/unit/scripts/test-groups.test.ts makes sure that only these modules start the scripts that take minutes.
 */
import { readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";

/** What takes minutes, by the modules that do it. A test file may be one itself. */
export const slowModules: Readonly<Record<string, string>> = {
  "test/e2e/support/test-vms.ts": "boots virtual machines",
  "test/integration/backend/vm/counting-machines.ts": "boots virtual machines",
  "test/integration/backend/vm/arm64.test.ts": "boots virtual machines",
  "test/e2e/support/release.ts": "builds releases",
  "test/e2e/support/dcos.ts": "builds node images",
  "test/e2e/support/published-debian.ts": "builds node images",
  "test/e2e/support/newer-engines.ts": "installs the engines of newer Debians",
  "test/e2e/support/rootless-computer.ts": "installs rootless engines",
  "test/e2e/examples-cloud.test.ts": "builds node images",
  "test/e2e/faults.test.ts": "builds node images",
  "test/e2e/once-shrink.test.ts": "builds node images",
  "test/e2e/dcos-releases.test.ts": "replays releases of the platform",
  "test/e2e/podman-flow.test.ts": "repeats a flow elsewhere",
  "test/e2e/container-copies.test.ts": "repeats a flow elsewhere",
  "test/e2e/container-files.test.ts": "repeats a flow elsewhere",
  "test/e2e/container-enterprise.test.ts": "repeats a flow elsewhere",
  "test/e2e/container-interrupts.test.ts": "repeats a flow elsewhere",
  "test/e2e/container-in-container.test.ts": "repeats a flow elsewhere",
  "test/e2e/container-remote.test.ts": "repeats a flow elsewhere",
  "test/e2e/custom-ca.test.ts": "repeats a flow elsewhere",
  "test/e2e/ci-recipes.test.ts": "plays jobs of CI systems",
  "test/e2e/deadline.test.ts": "waits for the ends of clusters",
  "test/e2e/lifetime.test.ts": "waits for the ends of clusters",
  "test/integration/local-cloud/foreign-clients.test.ts": "starts the cloud's own clients",
  "test/integration/hostile-input.test.ts": "gives 10 MB to every parser",
};

/** QEMU translates the code of virtual machines where KVM doesn't work, which keeps all processors busy. */
const busyReason = "boots virtual machines";

/** Files of the e2e tier that take longest, longest first. They begin first, so that no lane has one left at the end. */
export const longFiles = [
  "container-cgroup2",
  "platforms",
  "examples",
  "vm-flow",
  "vm-newer-qemu",
  "node-recipe",
  "release",
  "vm-platforms",
  "vm-releases",
  "vm-breaking",
  "vm-chaos",
  "dcos",
  "podman-flow",
  "once-shrink",
  "hostile-bootstrap",
  "library",
  "container-enterprise",
  "enterprise",
  "dcos-releases",
  "bring-your-own",
  "interrupts",
  "release-package",
  "release-faulty",
].map((name) => `test/e2e/${name}.test.ts`);

export interface TestGroups {
  /** What takes minutes in a file, by its path; only `./scripts/test all` runs these files. */
  readonly slow: ReadonlyMap<string, string>;
  /** The files that keep every processor busy: one runs beside the other files, and two when no others are left. */
  readonly busy: ReadonlySet<string>;
}

/** Paths are relative to the working directory, the top of the repository. */
export async function groupTests(files: readonly string[]): Promise<TestGroups> {
  const found = await Promise.all(
    files.map(async (file) => [file, await slowReason(file)] as const),
  );
  const slow = new Map(
    found.flatMap(([file, reason]) => (reason === undefined ? [] : [[file, reason] as const])),
  );
  return {
    slow,
    busy: new Set([...slow].filter(([, reason]) => reason === busyReason).map(([file]) => file)),
  };
}

export const longestFirst = (files: readonly string[]): string[] => [
  ...longFiles.filter((file) => files.includes(file)),
  ...files.filter((file) => !longFiles.includes(file)),
];

/** Follows the imports of modules in `test`, except those of types alone. */
async function slowReason(file: string): Promise<string | undefined> {
  const reached = [file];
  for (const path of reached) {
    const reason = slowModules[path];
    if (reason !== undefined) return reason;
    const imports = await importsOf(path);
    reached.push(
      ...imports.filter((target) => target.startsWith("test/") && !reached.includes(target)),
    );
  }
  return undefined;
}

async function importsOf(path: string): Promise<readonly string[]> {
  try {
    const imports = new Bun.Transpiler({ loader: "ts" }).scanImports(await readFile(path, "utf8"));
    return imports
      .filter((each) => each.path.startsWith("."))
      .map((each) => normalize(join(dirname(path), each.path)));
  } catch {
    // A file that can't be read or parsed fails when it runs.
    return [];
  }
}
