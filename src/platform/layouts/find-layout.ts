import type { Layout } from "../layout.ts";
import { clusterLayout } from "./cluster.ts";
import { dcosLayout } from "./dcos.ts";

/** All layouts. A new one is added here and nowhere else. */
export const layouts: readonly Layout[] = [clusterLayout, dcosLayout];

export const layoutOf = (name: Layout["name"]): Layout => ({ cluster: clusterLayout, dcos: dcosLayout })[name];

/** The layout whose install script has this file name; it is what genconf wrote that decides. */
export const layoutByInstallScript = (file: string): Layout | undefined =>
  layouts.find((layout) => layout.installScript === file);
