/**
 * Serves a local cloud until SIGTERM or SIGINT, or until the process that started it is gone; then removes all of it. Prints one line of JSON when it serves, and writes
 * it to DIR/local-cloud.json.
 *
 * Usage: bun test/local-cloud/main.ts --driver container|in-process --directory DIR [--port 0] [--ssh-port 22]
 *          [--boot-delay-ms N[,N…]] [--api-delay-ms N] [--answers FILE]
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { accounts } from "./endpoint/accounts.ts";
import { LocalCloud } from "./local-cloud.ts";
import type { ScriptedAnswer } from "./machines/scripted-answers.ts";

const { values } = parseArgs({
  options: {
    driver: { type: "string" },
    directory: { type: "string" },
    port: { type: "string", default: "0" },
    "ssh-port": { type: "string", default: "22" },
    "boot-delay-ms": { type: "string", default: "0" },
    "api-delay-ms": { type: "string", default: "0" },
    /** A JSON file with the scripted answers of in-process machines. */
    answers: { type: "string" },
  },
});
const { driver, directory } = values;
if ((driver !== "container" && driver !== "in-process") || directory === undefined) {
  throw new Error("usage: main.ts --driver container|in-process --directory DIR");
}

// Before anything is made, so that no signal can come between machines and their removal.
const told = new Promise<void>((resolve) => {
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => resolve());
  // Whoever started this may be killed without a chance to say so.
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && resolve(), 1000).unref();
});
const announcementFile = join(directory, "local-cloud.json");
// Or a former one could be taken for this one's.
await rm(announcementFile, { force: true });
await using cloud = await LocalCloud.start({
  driver,
  directory,
  port: Number(values.port),
  sshPort: Number(values["ssh-port"]),
  behaviour: {
    bootDelayMs: values["boot-delay-ms"].split(",").map(Number),
    apiDelayMs: Number(values["api-delay-ms"]),
  },
});
if (values.answers !== undefined) {
  cloud.answers.replace((await Bun.file(values.answers).json()) as readonly ScriptedAnswer[]);
}
const announcement = JSON.stringify({
  endpoint: cloud.endpoint,
  accessKeyId: cloud.accessKeyId,
  secretAccessKey: cloud.secretAccessKey,
  region: cloud.region,
  checkAddressUrl: cloud.checkAddressUrl,
  gatewayAddress: cloud.gatewayAddress,
  otherAccessKeyId: accounts.other.accessKeyId,
  otherSecretAccessKey: accounts.other.secretAccessKey,
  expiredAccessKeyId: accounts.expired.accessKeyId,
  expiredSecretAccessKey: accounts.expired.secretAccessKey,
  expiredSessionToken: accounts.expired.sessionToken,
});
await Bun.write(announcementFile, `${announcement}\n`);
console.log(announcement);
await told;
