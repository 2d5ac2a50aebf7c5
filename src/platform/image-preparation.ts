import { quote } from "../ssh/quote.ts";
import type { Layout } from "./layout.ts";
import { layoutNeeds } from "./layouts/find-layout.ts";
import { packageFunctions } from "./phases/package-functions.ts";
import { neededPrograms } from "./phases/prepare-node.ts";
import { completeScript } from "./phases/phase.ts";

/**
 * Only installs packages: systemd doesn't run while an image is built, and containers use their host's clock. Nodes
 * don't start Docker when they boot, but once prepareScript has configured it: otherwise each would start it twice.
 */
const script = `
main() {
  conditions=none
  read_system
  install_missing "$@"
  for unit in docker.service docker.socket; do systemctl disable "$unit" 2>/dev/null || :; done
}

${packageFunctions}`;

/**
 * Installs the programs that the layout's nodes need, for either variant, in a node image, so that not every node has
 * to install them. Undefined if the layout needs nothing that such an image lacks.
 */
export function imagePreparation(layout: Layout): { readonly name: string; readonly script: string } | undefined {
  if (!layoutNeeds(layout, "docker")) return undefined;
  const words = ["e2e-packages", ...neededPrograms(layout, "enterprise")];
  return { name: layout.name, script: `set -- ${quote(words)}\n${completeScript(script)}` };
}
