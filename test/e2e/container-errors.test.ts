/** The container engine's errors, caused in the built executable: text, stream, exit code and JSON. */
import { expect, test } from "bun:test";
import { shareBackend } from "./support/shared-backend.ts";
import {
  docker,
  nodeImage,
  pathWithEngine,
  startTestContainers,
} from "./support/test-containers.ts";

const { backend: containers, artifact } = shareBackend(startTestContainers);

interface EngineErrorCase {
  readonly id: string;
  readonly status: number;
  /** The first two words of a command that the engine refuses, and what it says. */
  readonly refused: string;
  readonly daemon: string;
  readonly says: readonly string[];
}

const cases: readonly EngineErrorCase[] = [
  {
    id: "engine-failed",
    status: 1,
    refused: "network create",
    daemon: "something odd happened",
    says: ["docker network failed: something odd happened.", "Pass -vv to see every command"],
  },
  {
    id: "capacity-lacking",
    status: 1,
    refused: "network create",
    daemon: "could not find an available, non-overlapping IPv4 address pool among the defaults",
    says: ["Docker has no free addresses for another network", "docker network prune"],
  },
  {
    id: "machine-not-set-up",
    status: 5,
    refused: "info --format={{json .}}",
    daemon: "permission denied while trying to connect to the Docker daemon socket",
    says: ["You may not use Docker on this computer", "sudo usermod -aG docker $USER"],
  },
];

test.each(cases.map((each) => [each.id, each] as const))(
  "%s",
  async (id, { status, refused, daemon, says }) => {
    const lines = `[ "$1 $2" != '${refused}' ] || { echo 'Error response from daemon: ${daemon}' >&2; exit 1; }`;
    const environment = { PATH: await pathWithEngine(containers().folder, "docker", () => lines) };
    const clusterId = containers().id("errors");
    const words = [
      "create",
      "--variant",
      "oss",
      "--node-image",
      nodeImage,
      "-c",
      clusterId,
      artifact(),
    ];
    const ran = await containers().run(words, { environment });
    expect({ status: ran.status, stdout: ran.stdout }).toEqual({ status, stdout: "" });
    for (const text of [...says, `[${id}]`]) expect(ran.stderr).toContain(text);
    const json = await containers().run([...words, "--output", "json"], { environment });
    expect(json.status).toBe(status);
    expect(JSON.parse(json.stdout)).toMatchObject({ schemaVersion: 1, error: { id } });
    expect(await containers().things(clusterId)).toEqual([]);
  },
);

test("what destroy can't remove is named, and a second attempt removes it", async () => {
  const id = containers().id("sticky");
  const creationId = "0123456789abcdef";
  const labels = [
    `--label=cluster-e2e.cluster-id=${id}`,
    `--label=cluster-e2e.creation-id=${creationId}`,
  ];
  const network = await docker(["network", "create", ...labels, `cluster-e2e-${id}-${creationId}`]);
  const lines = `[ "$1 $2" != 'network rm' ] || { echo 'Error response from daemon: it has active endpoints' >&2; exit 1; }`;
  const environment = { PATH: await pathWithEngine(containers().folder, "docker", () => lines) };
  const refused = await containers().run(["destroy", "-c", id], { environment });
  expect({ status: refused.status, stdout: refused.stdout }).toEqual({ status: 1, stdout: "" });
  expect(refused.stderr).toContain(`Left behind: network ${network.slice(0, 12)}`);
  expect(refused.stderr).toContain("it has active endpoints");
  expect((await containers().run(["destroy", "-c", id])).status).toBe(0);
});
