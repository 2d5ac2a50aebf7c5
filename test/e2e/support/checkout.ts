/** Checkouts of the platform's repository, with the parts that syncing reads. */
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";

/** Texts by path. A path that ends in `*` is of a program: the star is no part of its name. */
export type CheckoutFiles = Readonly<Record<string, string>>;

export interface CheckoutNames {
  readonly tests: string;
  readonly library: string;
}

export const clusterNames: CheckoutNames = {
  tests: "integration-test",
  library: "cluster_internal_utils",
};

/** Makes the folder. An enterprise one names the open source repository that it builds upon. */
export async function makeCheckout(
  folder: string,
  kind: "oss" | "enterprise",
  { tests, library }: { readonly tests: CheckoutFiles; readonly library: CheckoutFiles },
  names: CheckoutNames,
): Promise<string> {
  const packages = join(folder, "packages");
  await mkdir(packages, { recursive: true });
  await Promise.all([
    write(join(packages, names.tests, "extra"), tests),
    write(join(packages, "bootstrap", "extra", names.library), library),
    Bun.write(join(folder, "README.md"), "not a part of what is synced\n"),
    ...(kind === "enterprise" ? [Bun.write(join(packages, "upstream.json"), "{}\n")] : []),
  ]);
  return folder;
}

async function write(folder: string, files: CheckoutFiles): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, path.replace(/\*$/, ""));
    await Bun.write(file, text);
    await chmod(file, path.endsWith("*") ? 0o755 : 0o644);
  }
}
