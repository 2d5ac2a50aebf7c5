import type { Variant } from "../../model/cluster-record.ts";
import { isMapping } from "../../system/is-mapping.ts";
import { parseManifest } from "./checkout-manifest.ts";
import type { RemoteManifest } from "./checkout-manifest.ts";
import type { Layout } from "../layout.ts";
import { parseJson } from "../../system/parse-json.ts";

/** What a master has installed, as far as a sync needs to know. */
export interface CheckoutState {
  readonly layout: Layout;
  readonly variant: Variant;
  readonly manifest: RemoteManifest;
}

/**
 * Parses what `stateCommand` printed; a string says what is missing on the node. If the version file doesn't name the variant, as in older releases,
 * the cluster's variant is used.
 */
export function parseState(
  stdout: string,
  layouts: readonly Layout[],
  clusterVariant: Variant,
): CheckoutState | string {
  const [, name, versionFile = "", records = ""] =
    /^# layout (\S+)\n# version\n(.*?)\n# tests\n(.*)/s.exec(stdout) ?? [];
  const layout = layouts.find((each) => each.name === name);
  if (layout === undefined) return "the installation has not begun";
  const body = parseJson(versionFile);
  if (!isMapping(body)) return `${layout.versionFile} is incomplete`;
  return { layout, variant: layout.installedVariant(body) ?? clusterVariant, manifest: parseManifest(records) };
}
