/** Runs one command on a node like `run`. It is a separate program, because only its process sees the read-only file system. */
import { runOnNode } from "../../../src/cluster/run-on-node.ts";
import type { FetchRequest } from "../../../src/cluster/fetch.ts";
import { LineProgress } from "../../../src/library/runtime.ts";
import type { NodeRecord } from "../../../src/model/cluster-record.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { destinationOf, signal } from "../../support/ssh-options.ts";

const request = JSON.parse(process.argv[2] ?? "") as {
  directory: string;
  port: number;
  /** Of further masters. */
  otherPorts?: number[];
  words: string[];
  fetches: FetchRequest[];
  hasTestEnvironment?: boolean;
};
const nodes = [request.port, ...(request.otherPorts ?? [])].map((port, index): NodeRecord => ({
  ...destinationOf({ port, user: "root" }),
  id: `i-${index}`,
  index,
  role: "master",
  state: "running",
  publicAddress: "127.0.0.1",
  privateAddress: "127.0.0.1",
  web: { host: "127.0.0.1", httpPort: 80, httpsPort: 443 },
}));
process.exitCode = await runOnNode(
  {
    environment: process.env,
    clock: systemClock,
    progress: new LineProgress((line) => console.error(line)),
    onConnecting: () => {},
    signal,
  },
  { ...exampleCluster(nodes, "oss"), directory: request.directory },
  {
    words: request.words,
    missingFolderHint: "Install the platform first.",
    node: undefined,
    login: { name: undefined, password: undefined },
    variables: {},
    hasTestEnvironment: request.hasTestEnvironment ?? false,
    checkout: undefined,
    fetches: request.fetches,
    isTerminal: false,
  },
);
