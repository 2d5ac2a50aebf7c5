/** Runs a command on the node of an ssh configuration, over this process's own streams. Ends with the command's status. Usage: CONFIGURATION COMMAND */
import { startSession } from "../../../../src/ssh/session/session.ts";

const [sshConfigFile = "", command = ""] = process.argv.slice(2);
const interrupt = new AbortController();
process.on("SIGINT", () => interrupt.abort(new Error("interrupted")));
const { end } = startSession(
  {
    sshConfigFile,
    host: "master_0",
    loginUser: "root",
    sudo: true,
    script: { settings: [], words: [command], missingFolderHint: "" },
    terminal: false,
    stdio: ["inherit", "inherit", "inherit"],
    environment: process.env,
    master: undefined,
    connect: () => Promise.reject(new Error("no second connection")),
  },
  interrupt.signal,
);
const { report } = await end;
process.exitCode = await report(interrupt.signal).catch(() => 1);
