import { quote } from "../ssh/quote.ts";
import type { Layout } from "./layout.ts";
import { layoutNeeds } from "./layouts/find-layout.ts";
import { packageFunctions } from "./phases/package-functions.ts";
import { neededPrograms } from "./phases/prepare-node.ts";
import { completeScript } from "./phases/remote-script.ts";

/** Installs packages only: there is no systemd while an image is built, and containers have the clock of their host. */
const script = `
main() {
  conditions=none
  read_system
  install_missing "$@"
}

${packageFunctions}`;

/**
 * Brings the programs that the layout's nodes need, of whichever variant, into an image of nodes, so that not every node has to install them.
 * Undefined where the layout needs nothing that such an image lacks.
 */
export function imagePreparation(layout: Layout): { readonly name: string; readonly script: string } | undefined {
  if (!layoutNeeds(layout, "docker")) return undefined;
  const words = ["e2e-packages", ...neededPrograms(layout, "enterprise")];
  return { name: layout.name, script: `set -- ${quote(words)}\n${completeScript(script)}` };
}
