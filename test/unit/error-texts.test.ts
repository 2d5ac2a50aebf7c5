import { layoutOf } from "../support/layout-of.ts";
/** The texts of errors, as `message → hint`. Those that only a command line or a machine can cause are fixed in test/e2e (see errors.test.ts). */
import { describe, expect, test } from "bun:test";
import type { Backend } from "../../src/backend/contract.ts";
import { findSource } from "../support/find-source.ts";
import { findImage } from "../../src/backend/cloud/launch/images.ts";
import {
  clusterExists as cloudClusterExists,
  findSubnets,
} from "../../src/backend/cloud/launch/network.ts";
import { engineMissing } from "../../src/backend/container/engine/engine-errors.ts";
import { engineKinds } from "../../src/backend/container/engine/engine-kinds.ts";
import {
  assertCgroups1,
  assertIncomplete,
  clusterExists,
  machineFailed,
  notWhole,
  snapshotNotFound,
} from "../../src/backend/shared/machine-errors.ts";
import { assertDiskIsLargeEnough } from "../../src/backend/vm/images/image-store.ts";
import { keyMissing } from "../../src/cluster/connections.ts";
import { tooSlow } from "../../src/system/time-limit.ts";
import { usedHereOnly } from "../../src/cluster/export-cluster.ts";
import { findNode } from "../../src/cluster/find-cluster.ts";
import { listSnapshots } from "../../src/cluster/snapshots.ts";
import { type ErrorId, errorTable } from "../../src/errors.ts";
import { syncPlan } from "../../src/platform/checkout/checkout.ts";
import { deadlinePassed } from "../../src/platform/readiness/not-ready.ts";
import {
  channelRefused,
  connectionClosed,
  connectionLost,
  hostKeyChanged,
} from "../../src/ssh/connection/connection-errors.ts";
import { neverAborted } from "../support/never-aborted.ts";
import {
  answer,
  api,
  cluster,
  dockerSays,
  elsewhere,
  errorOf,
  failed,
  type Failing,
  master,
  qemuSays,
  search,
  sshFails,
  sync,
  target,
} from "./error-causes.ts";
import { installTexts } from "./install-error-texts.ts";

const table: Partial<Record<ErrorId, readonly (readonly [Failing, string])[]>> = {
  "bad-usage": [
    [
      () => usedHereOnly("vm"),
      "Clusters of this kind (vm) are reached from their own machine only. → ",
    ],
    [
      async () => listSnapshots({ name: "cloud" } as Backend<unknown>, "base", neverAborted),
      "Clusters of this kind (cloud) have no snapshots. → ",
    ],
    [
      () => assertDiskIsLargeEnough({ path: "/i.qcow2", sizeBytes: 3 * 1024 ** 3 } as never, 2048),
      "The image /i.qcow2 is a disk of 3072 MB, but `diskSize` is smaller. → Pass `diskSize 3g` or more.",
    ],
    [
      () =>
        syncPlan(
          { folder: "/checkout", variant: "oss", contents: new Map() } as never,
          "oss",
          layoutOf("cluster"),
        ),
      "/checkout/packages/integration-test/extra does not exist, but the cluster's tests have that name. → Sync a checkout of the installed release.",
    ],
  ],
  "cluster-not-found": [
    [
      async () => search([]),
      'There is no cluster "base" in region us-east-1. → Run the list command to see all clusters, or the doctor command to see what is left of others.',
    ],
    [
      async () => search(["us-west-2"]),
      'There is no cluster "base" in region us-east-1. → There is one in us-west-2: add `region us-west-2`.',
    ],
  ],
  "node-not-found": [
    [
      () => findNode(cluster, "agent_7"),
      `Cluster "example" has no node "agent_7". → The cluster's nodes are master_0; its groups are all, masters.`,
    ],
    [
      () =>
        findNode(
          { ...cluster, nodes: [{ ...master, ssh: { ...master.ssh, host: "" } }] },
          "master_0",
        ),
      `Node "master_0" of cluster "example" has no address. → The node is still starting, or has lost its network. Run the inspect command to see the nodes' addresses.`,
    ],
  ],
  "deadline-passed": [
    [
      () => tooSlow("Creating", "base"),
      'Creating cluster "base" exceeded its time limit. → Allow more time with `timeout`, or see the log for what was slow.',
    ],
    [
      () => tooSlow("Waiting for", "base"),
      'Waiting for cluster "base" exceeded its time limit. → Allow more time with `timeout`, or see the log for what was slow.',
    ],
    [
      () =>
        deadlinePassed(
          [{ subject: "master_0", reason: "not installed yet" }],
          [failed("", [])],
          2_000,
        ),
      "The cluster with 1 node was not ready after 2 s.\nNot ready yet:\n  master_0: not installed yet → Wait again, or allow more time with `timeout`.",
    ],
    [
      () => deadlinePassed([], [failed("", []), failed("", [])], 2_000),
      "The cluster with 2 nodes was not ready after 2 s.\nAll checks had passed, but time ran out before they were confirmed. → Wait again, or allow more time with `timeout`.",
    ],
  ],
  "machine-not-set-up": [
    [
      () => engineMissing(engineKinds.docker, undefined),
      "There is no executable program docker on the PATH. → Install Docker, version 20.10 or later: https://docs.docker.com/engine/install/\nOn Debian and Ubuntu:\n    sudo apt-get install docker.io",
    ],
    [
      () => dockerSays("Cannot connect to the Docker daemon", "ps"),
      "Docker does not answer: Cannot connect to the Docker daemon. → Start it: sudo systemctl start docker; on macOS, start Docker Desktop or its equivalent. If another Docker is meant, set DOCKER_HOST, such as unix://$XDG_RUNTIME_DIR/docker.sock for a rootless one.",
    ],
    [
      () => dockerSays("connect: permission denied", "ps"),
      "You may not use Docker on this computer: connect: permission denied. → If you run a rootless Docker, set DOCKER_HOST=unix://$XDG_RUNTIME_DIR/docker.sock. Else join the group docker, then log in again:\n    sudo usermod -aG docker $USER",
    ],
    [
      () =>
        assertCgroups1(true, { name: "debian-12", cgroupVersion: 2, advice: "Choose another." }),
      "The artifact's platform requires cgroups 1, but debian-12 has cgroups 2. → Choose another.",
    ],
  ],
  "no-credentials": [
    [
      async () => findSource({ CLOUD_ACCESS_KEY_ID: "AKID" }),
      "CLOUD_ACCESS_KEY_ID is set without CLOUD_SECRET_ACCESS_KEY. → Set CLOUD_SECRET_ACCESS_KEY too, or unset CLOUD_ACCESS_KEY_ID to use another source.",
    ],
    [
      async () => findSource({ AWS_EC2_METADATA_DISABLED: "true" }),
      "No cloud credentials were found. Looked for: CLOUD_ACCESS_KEY_ID and CLOUD_SECRET_ACCESS_KEY; CLOUD_PROFILE; AWS_PROFILE; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; a default profile in /nonexistent/.aws/credentials; instance metadata. → Set CLOUD_ACCESS_KEY_ID and CLOUD_SECRET_ACCESS_KEY, or set CLOUD_PROFILE to a profile of the shared credentials file.",
    ],
  ],
  "credentials-refused": [
    [
      () => answer("RequestExpired", "Request has expired."),
      "The session of the credentials from the variables has expired: Request has expired (RequestExpired). → Renew the session, and set the variables again.",
    ],
  ],
  "not-permitted": [
    [
      () => answer("UnauthorizedOperation", "You may not.", 403),
      "The account may not call ec2:RunInstances with the credentials from the variables: You may not (UnauthorizedOperation). → Allow ec2:RunInstances for this user or role.",
    ],
  ],
  "no-default-network": [
    [
      async () => findSubnets(api, undefined, neverAborted),
      "Region us-west-2 has no default network with a subnet. → Pass a subnet that assigns public addresses with `subnetId`, or choose another `region`.",
    ],
    [
      async () => findSubnets(api, "subnet-1", neverAborted),
      "Region us-west-2 has no usable subnet subnet-1. → Pass a subnet that assigns public addresses with `subnetId`, or choose another `region`.",
    ],
  ],
  "region-not-enabled": [
    [
      elsewhere,
      "Region mars-1 does not exist, or is not enabled for the account. → Enabled: us-east-1, us-west-2.",
    ],
  ],
  "image-not-found": [
    [
      async () => findImage(api, "centos-7", undefined, neverAborted),
      'There is no image of centos-7 ("CentOS Linux 7 x86_64*", owner 125523088429) in region us-west-2. → Choose `linuxDistribution rocky-8 or almalinux-8`, another `region`, or pass an image with `image` and `sshUser`.',
    ],
    [
      async () => findImage(api, "debian-12", { id: "ami-1", user: "admin" }, neverAborted),
      "There is no image ami-1 in region us-west-2. → Choose another `linuxDistribution`, another `region`, or pass an image with `image` and `sshUser`.",
    ],
  ],
  "cluster-exists": [
    [
      () => clusterExists("base", { removal: "cluster-vm destroy -c base" }),
      'A cluster "base" already exists or is being created on this computer. → Choose another `clusterId`, or remove that cluster:\n    cluster-vm destroy -c base',
    ],
    [
      () =>
        cloudClusterExists({
          clusterId: "base",
          region: "us-west-2",
          expiresAt: new Date(7_200_000),
          nowMs: 0,
        }),
      'A cluster "base" already exists or is being created in region us-west-2. It ends 02:00 UTC (in 2 h). → Choose another `clusterId`, or wait until that cluster has terminated.',
    ],
  ],
  "capacity-lacking": [
    [
      () => answer("VcpuLimitExceeded", "Too many."),
      "The account's limit in region us-west-2 is reached: Too many (VcpuLimitExceeded). → Request fewer machines or a smaller `instanceType`, or have the limit raised.",
    ],
    [
      () => dockerSays("no space left on device", "run"),
      "Docker's disk is full: no space left on device. → Free some space: destroy clusters that you no longer need, or remove images without a name with: docker image prune. Don't use system prune or volume prune: they remove stopped clusters and snapshots.",
    ],
    [
      () => dockerSays("could not find free subnet", "network"),
      "Docker has no free addresses for another network: could not find free subnet. → Destroy clusters that you no longer need, or remove networks that nobody uses with: docker network prune. Stopped clusters lose theirs too, and get it back when they start. If there are none, a VPN's routes may cover all ranges. Give the engine larger or other ranges: default-address-pools of Docker, default_subnet_pools of Podman.",
    ],
    [
      () => qemuSays("cannot set up guest memory"),
      "This computer does not have enough memory: cannot set up guest memory. → Use fewer nodes, or give them less memory with `memory`.",
    ],
  ],
  "engine-failed": [
    [
      () => dockerSays("something odd", "network", "create"),
      "docker network failed: something odd. → Pass -vv to see every command that was run.",
    ],
    [
      () => qemuSays(""),
      "qemu-img info failed: it exited with status 1. → Run cluster-vm doctor to see what this computer lacks. Pass -vv to see every command that was run.",
    ],
  ],
  "cloud-failed": [
    [
      () => answer("Odd", "The moon is full."),
      "ec2:RunInstances failed in region us-west-2: The moon is full (Odd). → The cloud's support can look up the request r-1.",
    ],
    [
      () => answer("RequestLimitExceeded", "Request limit exceeded.", 503),
      "The API kept throttling ec2:RunInstances: Request limit exceeded (RequestLimitExceeded). → Another program sends many requests for this account and region: stop it, or try again later.",
    ],
  ],
  "machine-failed": [
    [
      () =>
        machineFailed(
          { ...master, stateReason: "Volume limit exceeded" },
          { output: "panic\n", hint: "Try again." },
        ),
      "master_0 (i-1) stopped before it could be used: Volume limit exceeded.\n  panic → Try again.",
    ],
    [
      () => machineFailed(master, { output: "", hint: "Try again." }),
      "master_0 (i-1) stopped before it could be used: the reason is not known. → Try again.",
    ],
  ],
  ...installTexts,
  "connection-failed": [
    [
      () => sshFails({ code: "ECONNREFUSED" }),
      "Cannot reach master_0 (192.0.2.1 port 22): connection refused. → ",
    ],
    [
      () => sshFails({ level: "client-authentication" }),
      "master_0 (192.0.2.1 port 22) refused the login of admin with the cluster's key. → ",
    ],
    [
      () =>
        sshFails(
          { message: "no matching", level: "handshake" },
          { part: "host key", names: ["rsa-sha2-512"] },
        ),
      "The SSH server of master_0 (192.0.2.1 port 22) and this program have no host key in common. It offers rsa-sha2-512. → Choose an image whose SSH server allows another host key, or add this to its sshd_config: HostKey /etc/ssh/ssh_host_ed25519_key",
    ],
    [
      () => sshFails({ message: "Bad packet length" }),
      "The SSH server of master_0 (192.0.2.1 port 22) sends a banner that is too long, more than 35,000 bytes. → Shorten or remove the Banner in the sshd_config of its image, or choose another image.",
    ],
    [
      () => connectionLost(target, new Error("Keepalive timeout")),
      "The connection to master_0 (192.0.2.1 port 22) was lost: it no longer answers. → Try again. If this happens again, the machine is overloaded or shutting down: check its console output.",
    ],
    [
      () => connectionClosed(target),
      "The connection to master_0 (192.0.2.1 port 22) is closed. → ",
    ],
    [
      () => channelRefused(target, new Error("open failed")),
      "master_0 (192.0.2.1 port 22) did not accept a command: open failed. → Try again. If this happens again, the machine is overloaded or shutting down: check its console output.",
    ],
  ],
  "host-key-changed": [
    [
      () => hostKeyChanged(target, [Buffer.from("one")], Buffer.from("other")),
      "master_0 (192.0.2.1 port 22) presented a host key other than the pinned one: expected SHA256:dpLDrTVAu4A8Ags67mbNiIcSMjTqDG5xQ8Ct1z/0Me0, seen SHA256:2SmKENGwc1g33EvYXaxkGw887yekfl1TpU8vP1svz/o. → Another machine may have this address now, or somebody may be intercepting the connection. Nothing was sent. If the cluster's machines have terminated, create the cluster again.",
    ],
  ],
  "key-missing": [
    [
      () => keyMissing(cluster),
      'The SSH key of cluster "example" is not on this computer. → The cluster was created on another computer, or the key was deleted. Run the export command there, and the import command here. The key belongs at /nowhere/id_ed25519.',
    ],
  ],
  "remote-command-failed": [
    [
      async () => sync(2, "", "sh: syntax error\n"),
      "Cannot find out what is installed on master_0: sh: syntax error. → Inspect that node: the run command with `noTestEnv` opens a shell on it.",
    ],
  ],
  "snapshot-exists": [
    [
      () => assertIncomplete(cluster, "fresh", true),
      'Cluster "example" has a snapshot "fresh" already. → Choose another name, or delete that snapshot first.',
    ],
  ],
  "snapshot-not-found": [
    [
      () => snapshotNotFound(cluster, "fresh", []),
      'Cluster "example" has no snapshot "fresh". → It has no snapshots.',
    ],
    [
      () => snapshotNotFound(cluster, "fresh", ["old", "older"]),
      'Cluster "example" has no snapshot "fresh". → It has: old, older.',
    ],
  ],
  "transfer-failed": [
    [
      async () => sync(12, "", "tar: Input/output error\n"),
      "Cannot sync the checkout to master_0: tar: Input/output error. The node still has its previous files. → If the connection is not the cause, fix the cause, then sync again.",
    ],
    [
      async () => sync(12, "", "tar: No space left on device\n"),
      "Cannot sync the checkout to master_0: no space is left on its disk. The node still has its previous files. → If the connection is not the cause, fix the cause, then sync again.",
    ],
  ],
  "snapshot-unusable": [
    [
      () => notWhole(cluster, "fresh"),
      'The snapshot "fresh" of cluster "example" is incomplete. → Delete it, or make it again under the same name.',
    ],
  ],
};

// prettier-ignore
/** Worded in test/e2e, because they need a master's web server, or a stdout that can't be written; or in tests of upgrade and find-cluster. */
const elsewhereWorded: readonly ErrorId[] = ["cluster-busy", "login-refused", "output-lost", "upgrade-failed", "node-stopped", "trouble-noticed"];

describe.each(Object.entries(table))("%s", (id, rows) => {
  test.each(rows.map(([fails, text]) => [text, fails] as const))("%s", async (text, fails) => {
    const error = await errorOf(fails);
    expect(`${error.message} → ${error.hint ?? ""}`).toBe(text);
    expect(error.id).toBe(id as ErrorId);
  });
});

test("every id is worded here or elsewhere", () => {
  expect([...Object.keys(table), ...elsewhereWorded].toSorted()).toEqual(
    Object.keys(errorTable).toSorted(),
  );
});
