import { quote } from "../ssh/quote.ts";
import type { Layout } from "./layout.ts";
import { layoutNeeds } from "./layouts/find-layout.ts";
import { packageFunctions } from "./install/package-functions.ts";
import { neededPrograms } from "./install/prepare-node.ts";
import { completeScript } from "./install/phase.ts";

/** Starts nothing: systemd doesn't run while an image is built. Containers use their host's clock. */
const scriptOf = ({ imageSetup }: Layout): string => `
main() {
  conditions=none
  read_system
  install_missing "$@"
  set_up_image
}

set_up_image() {
  :
${imageSetup}}

${packageFunctions}`;

/**
 * Installs the programs that the layout's nodes need, for either variant, in a node image, so that not every node has
 * to install them. Undefined if the layout needs nothing that such an image lacks.
 */
export function imagePreparation(layout: Layout): { readonly name: string; readonly script: string } | undefined {
  if (!layoutNeeds(layout, "docker")) return undefined;
  const words = ["e2e-packages", ...neededPrograms(layout, "enterprise")];
  return { name: layout.name, script: `set -- ${quote(words)}\n${completeScript(scriptOf(layout))}` };
}
