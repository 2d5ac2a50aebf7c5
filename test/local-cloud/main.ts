/**
 * Serves a local cloud until SIGTERM or SIGINT, or until its parent process ends, and then removes it. When it is
 * ready, it prints one line of JSON, with the keys that open it, and writes it to DIR/local-cloud.json, which only this user can read.
 *
 * Usage: bun test/local-cloud/main.ts --driver container|in-process --directory DIR [--port 0] [--ssh-port 22]
 *          [--boot-delay-ms N[,N…]] [--api-delay-ms N] [--answers FILE] [--debian-image NAME]
 */
import { rm, writeFile } from "node:fs/promises";
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
    /** A JSON file of scripted answers for in-process machines. */
    answers: { type: "string" },
    /** The container image of machines with Debian 12, instead of the usual one. */
    "debian-image": { type: "string" },
  },
});
const { driver, directory } = values;
if ((driver !== "container" && driver !== "in-process") || directory === undefined) {
  throw new Error("usage: main.ts --driver container|in-process --directory DIR");
}

// Installed before any machine is created, so that a signal can't prevent their removal.
const ended = new Promise<void>((resolve) => {
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const)
    process.on(signal, () => resolve());
  // The parent process may be killed before it can end this one.
  const parent = process.ppid;
  setInterval(() => process.ppid !== parent && resolve(), 1000).unref();
});
const announcementFile = join(directory, "local-cloud.json");
// A file of an earlier cloud could be mistaken for this one's.
await rm(announcementFile, { force: true });
await using cloud = await LocalCloud.start({
  driver,
  directory,
  debianImage: values["debian-image"],
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
  controlToken: cloud.controlToken,
  region: cloud.region,
  checkAddressUrl: cloud.checkAddressUrl,
  gatewayAddress: cloud.gatewayAddress,
  otherAccessKeyId: accounts.other.accessKeyId,
  otherSecretAccessKey: accounts.other.secretAccessKey,
  expiredAccessKeyId: accounts.expired.accessKeyId,
  expiredSecretAccessKey: accounts.expired.secretAccessKey,
  expiredSessionToken: accounts.expired.sessionToken,
});
await writeFile(announcementFile, `${announcement}\n`, { mode: 0o600, flag: "wx" });
console.log(announcement);
await ended;
