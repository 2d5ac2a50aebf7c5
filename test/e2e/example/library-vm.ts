/** The library's example on virtual machines of this machine. Usage: bun library-vm.ts ARTIFACT IMAGE CLUSTER_ID */
import { Cluster, VmBackend } from "cluster-e2e";

const [buildArtifact = "generate_config.sh", image = "", clusterId = ""] = process.argv.slice(2);
const backend = new VmBackend({
  image,
  memory: "768m",
  cpus: 1,
  onProgress: (line) => console.error(line),
});

await using cluster = await Cluster.create(backend, {
  masters: 1,
  agents: 0,
  publicAgents: 0,
  variant: "oss",
  clusterId,
});
await cluster.installFromPath({
  buildArtifact,
  clusterConfig: { ...cluster.baseConfig, cluster_name: "made by a library" },
  ipDetectPath: cluster.ipDetectPath,
});
const found = await Cluster.find(backend, clusterId);
await cluster.snapshot("installed");
await found.masters[0].run({ args: ["rm", "/installed"] });
await cluster.restore("installed");
const { stdout } = await found.masters[0].run({ args: ["cat", "/installed"] });
console.log(`Installed on ${stdout.trim()}.`);
