/**
 * The enterprise variant with the library: a license and a superuser in the configuration, a wrong password, a failing
 * command, and an error in the block that uses the cluster. Usage: bun library-enterprise.ts ARTIFACT LICENSE
 */
import { CloudBackend, Cluster, ClusterError } from "cluster-e2e";

const [buildArtifact = "", license_key_contents = ""] = process.argv.slice(2);
const backend = new CloudBackend({
  region: "us-west-2",
  linuxDistribution: "debian-12",
  onProgress: (line) => console.error(line),
});

await using cluster = await Cluster.create(backend, {
  variant: "enterprise",
  agents: 0,
  publicAgents: 0,
});
const clusterConfig = { ...cluster.baseConfig, license_key_contents, superuser_username: "boss" };
await cluster.installFromPath({ buildArtifact, clusterConfig, ipDetectPath: cluster.ipDetectPath });
const superuserUsername = "boss";
console.log(
  `wrong password: ${await errorId(cluster.waitForClusterEnterprise({ superuserUsername, superuserPassword: "x" }))}`,
);
await cluster.waitForClusterEnterprise({ superuserUsername });

const found = await Cluster.find(backend, cluster.id);
const [master] = found.masters;
console.log(`nobody: ${(await master.run({ args: ["id", "-u", "nobody"] })).stdout.trim()}`);
console.log(`root: ${(await master.run({ args: ["id", "-un"] })).stdout.trim()}`);
console.log(
  `not root: ${(await master.run({ args: ["id", "-un"], asRoot: false })).stdout.trim()}`,
);
const killed = await master.run({ args: ["sh", "-c", "kill -KILL $$"], reject: false });
console.log(`killed: ${killed.status}`);
const bytes = await master.run({
  args: ["od", "-An", "-tx1"],
  env: { A: "1" },
  input: new Uint8Array([0, 255, 10]),
});
console.log(`bytes: ${bytes.stdout.trim()}`);
console.log(`failing: ${await errorId(master.run({ args: ["ls", "/nowhere"] }))}`);
const { files } = await found.saveLogs();
console.log(`logs: ${files.includes("master_0.install.log")}`);
throw new Error("The body's own error");

async function errorId(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "none";
  } catch (error) {
    return error instanceof ClusterError ? error.id : String(error);
  }
}
