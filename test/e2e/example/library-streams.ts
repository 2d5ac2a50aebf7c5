/** Uses a cluster of containers of this machine, and prints nothing. Usage: bun library-streams.ts CLUSTER_ID */
import { Cluster, ContainerBackend } from "cluster-e2e";

const cluster = await Cluster.find(new ContainerBackend(), process.argv[2] ?? "");
await cluster.run({ args: ["sh", "-c", "echo out; echo err >&2"] });
const { stdout } = await cluster.masters[0].run({ args: ["echo", "out"] });
process.exitCode = stdout.trim() === "out" ? 0 : 1;
