import { readdirSync, readFileSync } from "node:fs";

/** The argument lists of all processes on this machine, with NUL after each argument. */
export function argumentLists(): readonly string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((id) => {
      try {
        return readFileSync(`/proc/${id}/cmdline`, "latin1");
      } catch {
        return "";
      }
    });
}
