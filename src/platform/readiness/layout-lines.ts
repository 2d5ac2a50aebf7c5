import { quote } from "../../ssh/quote.ts";
import { installPaths } from "../install-paths.ts";
import type { Layout } from "../layout.ts";

/** Shell lines that set `layout` to the name of the node's layout, or to nothing if no installation has started. */
export const layoutLines = (
  layouts: readonly Layout[],
): string => `layout=$(cat ${installPaths.layout} 2>/dev/null || :)
[ -n "$layout" ] || {
${layouts
  .flatMap((layout) => [layout.versionFile, layout.installedMarker].map((file) => ({ name: layout.name, file })))
  .map(({ name, file }) => `  [ -n "$layout" ] || [ ! -e ${quote([file])} ] || layout=${name}`)
  .join("\n")}
}
`;
