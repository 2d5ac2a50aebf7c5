import type { Layout, NodeCondition } from "../layout.ts";
import { clusterLayout } from "./cluster.ts";
import { dcosLayout } from "./dcos.ts";

/** A new layout is added here and nowhere else. The first is assumed where nothing is known. */
export const layouts: readonly [Layout, ...Layout[]] = [clusterLayout, dcosLayout];

/** The layout of this name; without a name that is known, the first. */
export const layoutOf = (name: string | undefined): Layout =>
  layouts.find((layout) => layout.name === name) ?? layouts[0];

/** Whether nodes must meet the condition, as far as can be said without knowing more of them. */
export const layoutNeeds = (layout: Layout, condition: NodeCondition): boolean =>
  layout.conditions({ nodesKeepTime: true, configuration: {} }).includes(condition);

/** The layout whose install script has this file name; it is what genconf wrote that decides. */
export const layoutByInstallScript = (file: string): Layout | undefined =>
  layouts.find((layout) => layout.installScript === file);
