import { quote, shellText } from "../../ssh/shell-text.ts";
import { completeScript } from "../install/phase.ts";
import { neededPrograms, packageScript } from "../install/prepare/prepare-node.ts";
import { layoutNeeds } from "./find-layout.ts";
import type { Layout } from "./layout.ts";
import prepareImage from "./prepare-image.sh" with { type: "text" };

/**
 * Installs the programs and packages that the layout's nodes need, for any variant, in a node image, so that not every
 * node has to install them. Undefined if the layout needs nothing that such an image lacks.
 */
export function imagePreparation(layout: Layout): { readonly name: string; readonly script: string } | undefined {
  const hasPackages = layout.packages.apt.length > 0 || layout.packages.dnf.length > 0;
  if (!layoutNeeds(layout, "docker") && !hasPackages) return undefined;
  const words = ["e2e-packages", ...neededPrograms(layout, "enterprise")];
  const body = shellText(prepareImage) + packageScript(layout) + layout.imageSetup;
  return { name: layout.name, script: `set -- ${quote(words)}\n${completeScript(body)}` };
}
