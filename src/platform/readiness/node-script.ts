import { shellText } from "../../ssh/shell-text.ts";
import { installPaths, installUnits } from "../install-paths.ts";
import { layouts } from "../layouts/find-layout.ts";
import { layoutLines, valuesOfEach } from "./layout-lines.ts";
import nodeFile from "./node.sh" with { type: "text" };

/** Time limit for one run of the node's own check. */
const checkSeconds = 20;
const tailLines = 20;
/**
 * Limit for a log, and for a file of which one line is needed: all answers together must stay far below the part of a
 * command's output that is kept.
 */
const tailBytes = 64_000;

/** Collects everything that `wait` needs from a node; node.sh says what it prints. */
export const nodeScript =
  layoutLines(layouts) +
  shellText(nodeFile, {
    STATUS_FILE: installPaths.installStatus,
    LOG_FILE: installPaths.installLog,
    UNIT: installUnits.install,
    CHECK_SECONDS: checkSeconds,
    TAIL_LINES: tailLines,
    TAIL_BYTES: tailBytes,
    ...valuesOfEach(layouts, (layout) => ({
      SETUP_UNITS: layout.setupUnits.join(" "),
      CONFIG_FILE: layout.bootstrapConfigFile,
      CHECKS: layout.nodeChecks.map((words) => words.join(" ")).join("\n"),
      WRAPPER: layout.nodeCheckWrapper ?? "",
    })),
  });
