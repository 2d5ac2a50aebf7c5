import { quote } from "../ssh/quote.ts";
import type { Layout } from "./layout.ts";
import { layoutNeeds } from "./layouts/find-layout.ts";
import { packageFunctions } from "./phases/package-functions.ts";
import { neededPrograms } from "./phases/prepare-node.ts";
import { completeScript } from "./phases/remote-script.ts";

/** Installs packages only: there is no systemd while an image is built. Arguments: as of prepareScript's conditions, then programs. */
const script = `
main() {
  conditions=$1
  shift
  read_system
  install_missing "$@"
}

${packageFunctions}
in_container() { return 0; }
`;

/**
 * Brings the programs that the layout's nodes need, of whichever variant, into an image of nodes, so that not every node has to install them.
 * Undefined where the layout needs nothing that such an image lacks.
 */
export function imagePreparation(layout: Layout): { readonly name: string; readonly script: string } | undefined {
  const conditions = layout.conditions({ nodesKeepTime: false, configuration: {} });
  if (!layoutNeeds(layout, "docker")) return undefined;
  const words = ["e2e-packages", conditions.join(","), ...neededPrograms(layout, "enterprise")];
  return { name: layout.name, script: `set -- ${quote(words)}\n${completeScript(script)}` };
}
