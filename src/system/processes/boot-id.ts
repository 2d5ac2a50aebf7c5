import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { systemEnvironment } from "./child-environment.ts";
import { readOwnText } from "../files/read-text.ts";

/** A text that differs after each start of this computer. `undefined` if the system doesn't report it. */
export async function readBootId(): Promise<string | undefined> {
  try {
    return (await readOwnText("/proc/sys/kernel/random/boot_id")).trim();
  } catch {
    return await bootIdOfMac();
  }
}

async function bootIdOfMac(): Promise<string | undefined> {
  return await promisify(execFile)("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"], { env: systemEnvironment }).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  );
}
