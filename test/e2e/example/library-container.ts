/** The library's example on containers of this machine. Usage: bun library-container.ts ARTIFACT NODE_IMAGE CLUSTER_ID */
import { Cluster, ContainerBackend } from "cluster-e2e";

const [buildArtifact = "generate_config.sh", nodeImage = "", clusterId = ""] =
  process.argv.slice(2);
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
await cluster.snapshot("installed");

/** Each begins on a cluster on which nothing has happened since the installation. */
const tests = {
  "a job runs": async () => {
    await cluster.masters[0].run({ args: ["touch", "/root/job-has-run"] });
    const { stdout } = await cluster.masters[0].run({ args: ["srun", "-N1", "hostname"] });
    return `The job ran on ${stdout.trim()}.`;
  },
  "nothing is left of other tests": async () => {
    const { status } = await cluster.masters[0].run({
      args: ["test", "-e", "/root/job-has-run"],
      reject: false,
    });
    return `The file of the other test is ${status === 0 ? "there" : "gone"}.`;
  },
};
for (const [name, test] of Object.entries(tests)) {
  await cluster.restore("installed");
  await cluster.waitForClusterOss();
  console.log(`${name}: ${await test()}`);
}
