import { expect, test } from "bun:test";
import type { Engine } from "../../../../src/backend/container/engine.ts";
import { readEngineFacts } from "../../../../src/backend/container/engine-facts.ts";
import { failureOf } from "../../../support/failure-of.ts";

const never = new AbortController().signal;

/** An engine whose `info` is this. */
const saying = (information: unknown): Engine => ({
  program: "docker",
  ask: async () => Promise.resolve(JSON.stringify(information)),
  change: async () => Promise.reject(new Error("asked to change something")),
});

const factsOf = async (information: unknown) => readEngineFacts(saying(information), never);

test("reads cgroups and security from what Docker tells of itself", async () => {
  const common = { ServerVersion: "28.2.2", OperatingSystem: "Debian GNU/Linux 12", Driver: "overlay2", MemTotal: 5 };
  const modern = ["name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"];
  expect(await factsOf({ ...common, CgroupVersion: "2", SecurityOptions: modern })).toMatchObject({
    cgroupVersion: "2",
    hasAppArmor: true,
    hasSelinux: false,
    isRootless: false,
  });
  expect(await factsOf({ ...common, CgroupVersion: "1", SecurityOptions: null })).toMatchObject({
    cgroupVersion: "1",
    hasAppArmor: false,
  });
  expect(await factsOf({ ...common, SecurityOptions: ["name=rootless"] })).toMatchObject({ isRootless: true });
});

test("Docker 20's information of a daemon that didn't answer us is its failure, and no Podman's", async () => {
  const socket = "unix:///var/run/docker.sock";
  const forbidden = await failureOf(
    factsOf({
      ServerErrors: [
        `permission denied while trying to connect to the Docker daemon socket at ${socket}: Get "http://%2Fvar%2Frun%2Fdocker.sock/v1.24/info": dial unix /var/run/docker.sock: connect: permission denied`,
      ],
      ClientInfo: { Debug: false, Context: "default", Plugins: [], Warnings: null },
    }),
  );
  expect(forbidden.id).toBe("machine-not-set-up");
  expect(forbidden.message).toContain("You may not use Docker on this machine");
  expect(forbidden.hint).toContain("usermod -aG docker");
  const silent = await failureOf(
    factsOf({ ServerErrors: [`Cannot connect to the Docker daemon at ${socket}. Is the docker daemon running?`] }),
  );
  expect(silent.message).toContain("Docker does not answer");
});

test("what has another form is not Docker's", async () => {
  expect((await failureOf(factsOf({ host: {}, version: { Version: "4.3.1" } }))).message).toContain("not Docker's");
});
