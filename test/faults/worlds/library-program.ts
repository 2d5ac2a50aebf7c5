/**
 * Uses the cluster "faulty" through the library, as a program of a user does: finds it, then runs a command for at most a second, or installs an
 * artifact. Reports errors as the executables do. Usage: library-program.ts run | install
 */
import { CloudBackend, Cluster, ClusterError } from "cluster-e2e";

const [operation] = process.argv.slice(2);
try {
  const cluster = await Cluster.find(new CloudBackend({ region: "us-west-2" }), "faulty");
  const [master] = cluster.masters;
  if (operation === "install") {
    const clusterConfig = { cluster_name: "faulty" };
    await cluster.installFromPath({
      buildArtifact: "artifact.sh",
      clusterConfig,
      ipDetectPath: cluster.ipDetectPath,
    });
  } else {
    await master.run({ args: ["sleep", "600"], timeoutMs: 1_000 });
  }
  console.log("done");
} catch (error) {
  if (!(error instanceof ClusterError)) throw error;
  console.error(`Error: ${error.message}\n${error.hint ?? ""}\n[${error.id}]`);
  process.exitCode = 1;
}
