import { access, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Variant } from "../cluster/record.ts";
import type { Checked } from "../system/checked.ts";
import { problem } from "../system/checked.ts";
import type { Layout } from "./layout.ts";
import { layouts } from "./layouts/find-layout.ts";

/** A checkout of the cluster software's repository on this machine. */
export interface Checkout {
  /** Absolute. */
  readonly folder: string;
  readonly variant: Variant;
  /** Whose tests it holds, by name. */
  readonly layouts: readonly Layout["name"][];
}

/** Looks at `folder` (absolute). The problem of one that is no checkout names the paths that were looked for. */
export async function readCheckout(folder: string): Promise<Checked<Checkout>> {
  const information = await stat(folder).catch(() => undefined);
  if (information?.isDirectory() !== true) return problem(`There is no folder ${folder}.`);
  const found = await Promise.all(
    layouts.map(async (layout) => ((await isFolder(testsSource(folder, layout))) ? layout.name : [])),
  );
  const names = found.flat();
  if (names.length === 0) {
    const places = layouts.map((layout) => testsSource(folder, layout)).join(" nor ");
    return problem(`${folder} is not a checkout of the cluster software: there is neither ${places}.`);
  }
  return { value: { folder, variant: await checkoutVariant(folder), layouts: names } };
}

export const testsSource = (folder: string, layout: Layout): string =>
  join(folder, "packages", layout.testsPackage, "extra");

export const librarySource = (folder: string, layout: Layout): string =>
  join(folder, "packages", "bootstrap", "extra", layout.internalLibrary);

/** Enterprise checkouts build upon an open source one, which this file names. */
const checkoutVariant = (folder: string): Promise<Variant> =>
  access(join(folder, "packages", "upstream.json")).then(
    () => "enterprise",
    () => "oss",
  );

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (information) => information.isDirectory(),
    () => false,
  );
