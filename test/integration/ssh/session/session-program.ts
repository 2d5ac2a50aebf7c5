/** Runs a command on the node of an ssh configuration, over this process's own streams. Ends with the command's status. Usage: CONFIGURATION COMMAND [terminal] */
import { writeFileSync } from "node:fs";
import { ClusterError } from "../../../../src/errors.ts";
import { startSession } from "../../../../src/ssh/session/session.ts";
import { orAborted } from "../../../../src/system/time-limit.ts";

const noSecondConnection = (): Promise<never> => Promise.reject(new Error("no second connection"));
const [sshConfigFile = "", command = "", mode] = process.argv.slice(2);
const interrupt = new AbortController();
process.on("SIGINT", () => interrupt.abort(new Error("interrupted")));
const { end } = startSession(
  {
    sshConfigFile,
    host: "master_0",
    loginUser: "root",
    sudo: true,
    script: { settings: [], words: [command], missingFolderHint: "" },
    terminal: mode === "terminal",
    stdio: ["inherit", "inherit", "inherit"],
    environment: process.env,
    master: undefined,
    connect: (signal) =>
      orAborted(mode === "terminal" ? new Promise(() => {}) : noSecondConnection(), signal),
  },
  interrupt.signal,
);
const { report } = await end;
process.exitCode = await report(interrupt.signal).catch((error: unknown) => {
  if (error instanceof ClusterError && error.id === "output-lost")
    writeFileSync(2, `${error.id}\n`);
  return 1;
});
