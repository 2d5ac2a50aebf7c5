import { quote } from "../ssh/quote.ts";
import { shellText } from "../ssh/shell-text.ts";
import type { Layout } from "./layout.ts";
import { layoutNeeds } from "./layouts/find-layout.ts";
import { neededPrograms } from "./install/prepare/prepare-node.ts";
import packageFunctions from "./install/prepare/package-functions.sh" with { type: "text" };
import { completeScript } from "./install/phase.ts";
import prepareImage from "./install/prepare/prepare-image.sh" with { type: "text" };

/**
 * Installs the programs that the layout's nodes need, for either variant, in a node image, so that not every node has
 * to install them. Undefined if the layout needs nothing that such an image lacks.
 */
export function imagePreparation(layout: Layout): { readonly name: string; readonly script: string } | undefined {
  if (!layoutNeeds(layout, "docker")) return undefined;
  const words = ["e2e-packages", ...neededPrograms(layout, "enterprise")];
  const body = shellText(prepareImage) + shellText(packageFunctions) + layout.imageSetup;
  return { name: layout.name, script: `set -- ${quote(words)}\n${completeScript(body)}` };
}
