/** Runs one session, on its own terminal if it has one. It is a separate program, because a terminal belongs to a process, and so that it can be killed. */
import { join } from "node:path";
import { createConnectionPool } from "../../../src/ssh/connection/connection-pool.ts";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import { startSession } from "../../../src/ssh/session/session.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { destinationOf, signal } from "../../support/ssh-options.ts";

const request = JSON.parse(process.argv[2] ?? "") as {
  folder: string;
  port: number;
  words: string[];
  terminal: boolean;
};
await using pool = createConnectionPool({
  privateKeyFile: join(request.folder, "the key"),
  knownHosts: createKnownHosts(join(request.folder, "known hosts")),
  clock: systemClock,
  progress: silentProgress,
});
const variables = { SECRET: process.env["SECRET"] ?? "" };
const session = startSession(
  {
    sshConfigFile: join(request.folder, "ssh config"),
    host: "master_0",
    loginUser: "root",
    sudo: true,
    script: {
      settings: [
        {
          whenExists: undefined,
          environmentFile: undefined,
          variables,
          workingDirectory: undefined,
        },
      ],
      words: request.words,
      missingFolderHint: "",
    },
    terminal: request.terminal,
    stdio: ["inherit", "inherit", "inherit"],
    environment: process.env,
    master: undefined,
    connect: (connectSignal) =>
      pool.connect(destinationOf({ port: request.port, user: "root" }), connectSignal),
  },
  signal,
);
process.exitCode = await (await session.end).report(signal);
