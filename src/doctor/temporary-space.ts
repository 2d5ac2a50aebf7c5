import { freeSpaceProblem } from "../system/files/free-space.ts";
import { type Check, fail, localLimitMs, pass } from "../model/check.ts";

/** The space that `create` may need if the nodes cannot download the artifact themselves. */
export const neededBytes = 2_000_000_000;

export function temporarySpaceCheck(folder: string, bytes: number): Check {
  return {
    name: "temporary space",
    limitMs: localLimitMs,
    run: async () => {
      const problem = await freeSpaceProblem(folder, bytes);
      return problem === undefined
        ? pass(`${folder} has the ${bytes / 1e9} GB that create may need`)
        : fail(problem, "Make room, set TMPDIR to another folder, or give create another `workspaceDir`.");
    },
  };
}
