/** The library's example on containers of this machine. Usage: bun library-container.ts ARTIFACT NODE_IMAGE CLUSTER_ID */
import { Cluster, ContainerBackend } from "cluster-e2e";

const [buildArtifact = "generate_config.sh", nodeImage = "", clusterId = ""] = process.argv.slice(2);
const backend = new ContainerBackend({ nodeImage, onProgress: (line) => console.error(line) });

await using cluster = await Cluster.create(backend, {
  masters: 1,
  agents: 1,
  publicAgents: 0,
  variant: "oss",
  clusterId,
});
await cluster.installFromPath({
  buildArtifact,
  clusterConfig: { ...cluster.baseConfig, cluster_name: "made by a library" },
  ipDetectPath: cluster.ipDetectPath,
});
await cluster.waitForClusterOss();
const { stdout } = await cluster.masters[0].run({ args: ["srun", "-N1", "hostname"] });
console.log(`The job ran on ${stdout.trim()}.`);
