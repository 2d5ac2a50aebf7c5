import type { Layout, NodeCondition } from "./layout.ts";
import { clusterLayout } from "./cluster.ts";
import { dcosLayout } from "./dcos.ts";
import { folderLayout } from "./folder.ts";

/** Add a new layout here and nowhere else. The first one is the default if nothing is known. */
export const layouts: readonly [Layout, ...Layout[]] = [clusterLayout, dcosLayout, folderLayout()];

/** Returns the layout with this name, or the first layout if the name is unknown or missing. */
export const layoutOf = (name: string | undefined): Layout =>
  layouts.find((layout) => layout.name === name) ?? layouts[0];

/** Whether nodes must meet the condition, as far as it can be said without further facts about them. */
export const layoutNeeds = (layout: Layout, condition: NodeCondition): boolean =>
  layout.conditions({ nodesKeepTime: true, configuration: {} }).includes(condition);

/** Returns the layout whose install script has this file name. The script that genconf wrote decides which layout it is. */
export const layoutByInstallScript = (file: string): Layout | undefined =>
  layouts.find((layout) => layout.installScript === file);
