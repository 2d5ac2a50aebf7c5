import { shellText } from "../../ssh/shell-text.ts";
import { installPaths } from "../install-paths.ts";
import type { Layout } from "../layout.ts";
import findLayout from "./find-layout.sh" with { type: "text" };

/** Shell lines that set `layout` to the name of the node's layout, or to nothing if no installation has started. */
export function layoutLines(layouts: readonly Layout[]): string {
  return shellText(findLayout, {
    LAYOUT_FILE: installPaths.layout,
    LAYOUTS: layouts.map(({ name }) => name).join(" "),
    ...valuesOfEach(layouts, ({ versionFile, installedMarker }) => ({
      VERSION_FILE: versionFile,
      MARKER: installedMarker,
    })),
  });
}

/** Values that differ by layout: `NAME_<layout>`. */
export function valuesOfEach(
  layouts: readonly Layout[],
  valuesOf: (layout: Layout) => Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const entries = layouts.flatMap((layout) =>
    Object.entries(valuesOf(layout)).map(([name, value]) => [`${name}_${layout.name}`, value] as const),
  );
  return Object.fromEntries(entries);
}
