/**
 * A user's own test with the library: creates a cluster, installs the platform from an artifact, runs a job, and leaves
 * nothing. Usage: bun library.ts ARTIFACT
 */
import { CloudBackend, Cluster } from "cluster-e2e";

const [buildArtifact = "generate_config.sh"] = process.argv.slice(2);
const backend = new CloudBackend({
  region: "us-west-2",
  linuxDistribution: "debian-12",
  onProgress: (line) => console.error(line),
});

await using cluster = await Cluster.create(backend, {
  masters: 1,
  agents: 1,
  publicAgents: 1,
  variant: "oss",
});
await cluster.installFromPath({
  buildArtifact,
  clusterConfig: { ...cluster.baseConfig, cluster_name: "made by a library" },
  ipDetectPath: cluster.ipDetectPath,
});
await cluster.waitForClusterOss();

const { stdout } = await cluster.masters[0].run({ args: ["srun", "-N1", "hostname"] });
console.log(`The job ran on ${stdout.trim()}.`);
for (const agent of [...cluster.agents, ...cluster.publicAgents]) {
  const check = await agent.run({ args: ["systemctl", "is-active", "slurmd"], reject: false });
  console.log(`${agent.reference}: slurmd is ${check.stdout.trim()} (status ${check.status}).`);
}
