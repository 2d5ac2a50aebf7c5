/** Faults of Podman, in its own words, and of its containers. */
import { onlySsh } from "../../support/only-ssh.ts";
import type { Fault } from "../fault.ts";
import type { ContainerWorld } from "../worlds/container-world.ts";
import { failed } from "./cloud-injections.ts";
import { at, gone, killed, lingering, when } from "./engine-faults.ts";

type PodmanFault = Fault<ContainerWorld>;

const changing = (["network create", "create", "cp", "start"] as const).flatMap(
  (call): readonly PodmanFault[] => [
    at(
      `Podman's ${call} is carried out, and fails`,
      { call, when: "after", answer: "something odd happened", times: 1 },
      failed("engine-failed", "something odd happened"),
    ),
    at(
      `Podman's ${call} is killed`,
      { call, when: "after", answer: killed, times: 1 },
      failed("engine-failed", /SIGKILL|killed|signal|status/),
    ),
    at(
      `Podman's disk is full at ${call}`,
      {
        call,
        when: "before",
        answer: "write /var/lib/containers/storage/x: no space left on device",
        times: 1,
      },
      failed("capacity-lacking", "Podman's disk is full"),
    ),
  ],
);

const asking: readonly PodmanFault[] = [
  at(
    "Podman has no network addresses left",
    {
      call: "network create",
      when: "before",
      answer: "could not find free subnet from subnet pools",
    },
    failed("capacity-lacking", "no free addresses"),
  ),
  at(
    "Podman's machine is not running",
    {
      call: "info",
      when: "before",
      answer:
        "unable to connect to Podman socket: failed to connect: dial unix /run/podman/podman.sock",
    },
    failed("machine-not-set-up", "Podman does not answer", 5),
  ),
  at(
    "Podman's image of the nodes is missing",
    { call: "image inspect", when: "before", answer: "localhost/node: image not known" },
    failed("image-not-found", "localhost/node"),
  ),
];

const containers: readonly PodmanFault[] = [
  {
    name: "a container of Podman's ends during the configuration",
    place: "machine",
    seconds: 15,
    strike: lingering,
    act: when("Configure …", async ({ engine }, id) => engine.kill(id)),
    expected: gone,
  },
  {
    name: "Podman's program is not on the PATH",
    place: "computer",
    act: async (world) =>
      world.run(world.createWords, { environment: { PATH: await onlySsh(world.folder) } }),
    expected: failed("machine-not-set-up", "no executable program podman", 5),
  },
];

export const podmanFaults: readonly PodmanFault[] = [...changing, ...asking, ...containers];
