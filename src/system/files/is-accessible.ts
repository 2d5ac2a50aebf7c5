import { access, constants } from "node:fs/promises";

/** Whether something is at this path, of any kind, and allows this user what `mode` says (`constants.R_OK` and so on; default: anything). */
export async function isAccessible(path: string, mode: number = constants.F_OK): Promise<boolean> {
  return await access(path, mode).then(
    () => true,
    () => false,
  );
}
