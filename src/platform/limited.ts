import processTree from "../ssh/session/process-tree.sh" with { type: "text" };
import { shellText } from "../ssh/shell-text.ts";
import limitedFile from "./limited.sh" with { type: "text" };
import runLimited from "./run-limited.sh" with { type: "text" };

/** Lines for a script that runs programs of a platform with a time limit; see limited.sh. */
export const limitedLines = shellText(limitedFile, {
  RUN_LIMITED: shellText(processTree) + shellText(runLimited),
});
