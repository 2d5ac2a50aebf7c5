import type { Layout } from "../layout.ts";
import { clusterLayout } from "./cluster.ts";
import { dcosLayout } from "./dcos.ts";

/** A new layout is added here and nowhere else. */
const byName: Readonly<Record<Layout["name"], Layout>> = { cluster: clusterLayout, dcos: dcosLayout };

export const layouts: readonly Layout[] = Object.values(byName);
export const layoutOf = (name: Layout["name"]): Layout => byName[name];

/** Whether nodes must have version 1 of the control groups, whatever else is known of them. */
export const needsCgroups1 = (layout: Layout): boolean =>
  layout.conditions({ nodesKeepTime: true, configuration: {} }).includes("cgroups-1");

/** The layout whose install script has this file name; it is what genconf wrote that decides. */
export const layoutByInstallScript = (file: string): Layout | undefined =>
  layouts.find((layout) => layout.installScript === file);
