import { isAccessible } from "../../system/files/is-accessible.ts";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Variant } from "../../model/cluster-record.ts";
import type { Checked } from "../../system/checked.ts";
import { problem } from "../../system/checked.ts";
import type { ListedFile } from "../../system/files/list-files.ts";
import { listFiles } from "../../system/files/list-files.ts";
import type { Layout } from "../layout.ts";
import { layouts } from "../layouts/find-layout.ts";

/** A checkout of the platform's repository on this machine. */
export interface Checkout {
  /** Absolute path. */
  readonly folder: string;
  readonly variant: Variant;
  /** The contents for each layout whose tests are in the checkout. */
  readonly contents: ReadonlyMap<Layout["name"], CheckoutContents>;
}

interface CheckoutContents {
  readonly tests: readonly ListedFile[];
  /** Empty if the checkout has no bootstrap library. */
  readonly library: readonly ListedFile[];
}

/**
 * Lists the files to sync from `folder` (absolute). If it isn't a checkout, the problem names the paths that were tried. Every symbolic link that
 * leaves the checkout is a problem.
 */
export async function readCheckout(folder: string, signal: AbortSignal): Promise<Checked<Checkout>> {
  const information = await stat(folder).catch(() => undefined);
  if (information?.isDirectory() !== true) return problem(`The folder ${folder} does not exist.`);
  const present = await Promise.all(layouts.map((layout) => isFolder(testsSource(folder, layout))));
  const found = layouts.filter((_layout, index) => present[index]);
  if (found.length === 0) {
    const places = layouts.map((layout) => testsSource(folder, layout)).join(" nor ");
    return problem(`${folder} is not a checkout of the platform: it has neither ${places}.`);
  }
  const contents = new Map<Layout["name"], CheckoutContents>();
  const problems: string[] = [];
  for (const layout of found) {
    const tests = await list(folder, testsSource(folder, layout), signal);
    const library = await list(folder, librarySource(folder, layout), signal);
    problems.push(...(tests.problems ?? []), ...(library.problems ?? []));
    contents.set(layout.name, { tests: tests.value ?? [], library: library.value ?? [] });
  }
  return problems.length > 0 ? { problems } : { value: { folder, variant: await checkoutVariant(folder), contents } };
}

async function list(checkout: string, folder: string, signal: AbortSignal): Promise<Checked<readonly ListedFile[]>> {
  if (!(await isFolder(folder))) return { value: [] };
  const isSkipped = (name: string): boolean => name === "__pycache__" || name.endsWith(".pyc");
  return listFiles(folder, { boundary: checkout, isSkipped }, signal);
}

export const testsSource = (folder: string, layout: Layout): string =>
  join(folder, "packages", layout.testsPackage, "extra");

const librarySource = (folder: string, layout: Layout): string =>
  join(folder, "packages", "bootstrap", "extra", layout.internalLibrary);

/** An enterprise checkout builds on an open source one, which this file names. */
const checkoutVariant = async (folder: string): Promise<Variant> =>
  (await isAccessible(join(folder, "packages", "upstream.json"))) ? "enterprise" : "oss";

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (information) => information.isDirectory(),
    () => false,
  );
