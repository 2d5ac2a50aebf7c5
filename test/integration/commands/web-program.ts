/** Runs `web` for a cluster whose key is elsewhere. The tests run it as a child process, because it starts a browser. */
import { containerDriver } from "../../../src/bin/container-driver.ts";
import type { NodeRecord, Variant } from "../../../src/model/cluster-record.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { runCommandLine } from "../../support/run-command.ts";

const [variant] = process.argv.slice(2);
const master = { role: "master", index: 0, state: "running", web: { host: "192.0.2.1", httpPort: 80, httpsPort: 443 } };
const cluster = exampleCluster([master as NodeRecord], variant as Variant);
const backend = { find: async () => cluster };
console.log(JSON.stringify(await runCommandLine("web -c example", { driver: containerDriver, backend, nowMs: 0 })));
