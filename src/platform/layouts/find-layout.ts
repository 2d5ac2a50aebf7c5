import type { Layout, NodeCondition } from "./layout.ts";
import { clusterLayout } from "./cluster.ts";
import { dcosLayout } from "./dcos.ts";
import { folderLayout } from "./folder.ts";
import { quote, shellText } from "../../ssh/shell-text.ts";
import { completeScript } from "../install/phase.ts";
import { neededPrograms, packageScript } from "../install/prepare/prepare-node.ts";
import prepareImage from "./prepare-image.sh" with { type: "text" };

/** Add a new layout here and nowhere else. The first one is the default if nothing is known. */
export const layouts: readonly [Layout, ...Layout[]] = [clusterLayout, dcosLayout, folderLayout()];

/** Whether nodes must meet the condition, as far as that is known without further facts about them. */
export const layoutNeeds = (layout: Layout, condition: NodeCondition): boolean =>
  layout.conditions({ nodesKeepTime: true, configuration: {} }).includes(condition);

/** Returns the layout whose install script has this file name: genconf's output shows the true layout. */
export const layoutByInstallScript = (file: string): Layout | undefined =>
  layouts.find((layout) => layout.installScript === file);

/**
 * Installs the programs and packages that the layout's nodes need, for any variant, in a node image, so that not every
 * node has to install them. Undefined if the layout needs nothing that such an image lacks.
 */
export function imagePreparation(layout: Layout) {
  const hasPackages = layout.packages.apt.length > 0 || layout.packages.dnf.length > 0;
  if (!layoutNeeds(layout, "docker") && !hasPackages) return undefined;
  const words = ["e2e-packages", ...neededPrograms(layout, "enterprise")];
  const body = shellText(prepareImage) + packageScript(layout) + layout.imageSetup;
  return { name: layout.name, script: `set -- ${quote(words)}\n${completeScript(body)}` };
}

/** The ports of all layouts that users' machines must reach. */
export const publicPorts: readonly number[] = [
  ...new Set(layouts.flatMap((layout) => layout.publicPorts)),
];
