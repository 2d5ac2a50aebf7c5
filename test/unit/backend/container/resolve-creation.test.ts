import { readContainerOptions } from "../../../../src/backend/container/options.ts";
import { expect, test } from "bun:test";
import { engineKinds } from "../../../../src/backend/container/engine/engine-kinds.ts";
import type { Engine } from "../../../../src/backend/container/engine/engine.ts";
import { resolveCreation } from "../../../../src/backend/container/container-creation.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const engine = (cgroupVersion: "1" | "2"): Engine => ({
  kind: engineKinds.docker,
  option: "",
  ask: async ({ words }) =>
    Promise.resolve(
      words[0] === "info"
        ? JSON.stringify({ CgroupVersion: cgroupVersion, OperatingSystem: "Here" })
        : words[1] === "inspect" && words[0] === "network"
          ? "[]"
          : "",
    ),
  change: async () => Promise.reject(new Error("Nothing may be changed")),
  read: () => {
    throw new Error("nothing is read");
  },
  defer: async () => ({ run: async () => Promise.reject(new Error("Nothing may be changed")) }),
});

const resolve = async (
  cgroupVersion: "1" | "2",
  needsCgroups1: boolean,
  image: { readonly nodeImage?: string } = {},
) =>
  resolveCreation(
    engine(cgroupVersion),
    {
      distribution: "debian-12",
      options: readContainerOptions(image).options,
      needsCgroups1,
      folderDistribution: undefined,
      imagePreparation: undefined,
    },
    "linux",
    neverAborted,
  );

// Shows R114.
test("a machine with cgroups 2 is refused before anything is created if the platform needs cgroups 1", async () => {
  const error = await failureOf(resolve("2", true));
  expect(error.id).toBe("machine-not-set-up");
  expect(error.message).toContain("this computer");
  expect(error.hint).toContain("systemd.unified_cgroup_hierarchy=0");
  expect(error.hint).toContain("almalinux-8");
  expect((await resolve("1", true)).distribution).toBe("debian-12");
  expect((await resolve("2", false)).distribution).toBe("debian-12");
});

test("a cluster of the user's own image is recorded with the image in place of a distribution", async () => {
  expect(await resolve("2", false, { nodeImage: "registry.example.com/nodes:7" })).toMatchObject({
    distribution: "image registry.example.com/nodes:7",
    image: { name: "registry.example.com/nodes:7", isPresent: false },
  });
});
