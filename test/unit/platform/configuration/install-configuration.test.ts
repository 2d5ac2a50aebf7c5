import { expect, test } from "bun:test";
import { genconfFiles } from "../../../../src/platform/configuration/install-configuration.ts";
import type { InstallPlan } from "../../../../src/platform/install/install-plan.ts";
import { folderLayout } from "../../../../src/platform/layouts/folder.ts";
import {
  added,
  exampleCluster,
  examplePlan,
  exampleTraits,
} from "../../../support/install-example.ts";

const node = (role: "master" | "agent", privateAddress: string) =>
  ({
    role,
    index: 0,
    state: "running",
    privateAddress,
    ssh: { host: "" },
    web: { host: "" },
  }) as never;
const bootstrapUrl = "http://10.0.0.1:18080/0123456789abcdef0123456789abcdef";
const base = {
  bootstrap_url: bootstrapUrl,
  cluster_name: "example",
  master_list: ["10.0.0.1"],
  agent_list: ["10.0.0.2"],
  public_agent_list: [],
  resolvers: ["10.0.0.53"],
};

/** The `config.yaml` of a platform that is a folder. */
async function configuration(given: InstallPlan["configuration"]): Promise<unknown> {
  const plan = {
    ...examplePlan("/a", { variant: "none", configuration: given }),
    ...exampleTraits,
  };
  const cluster = exampleCluster([node("master", "10.0.0.1"), node("agent", "10.0.0.2")], "none");
  const facts = { resolvers: ["10.0.0.53"], bootstrapUrl, layout: folderLayout(), release: "1.0" };
  const [file] = await genconfFiles(plan, cluster, facts);
  expect(file).toMatchObject({ path: "config.yaml", mode: 0o600 });
  const { source } = file!;
  return JSON.parse("text" in source ? source.text : "");
}

test("a platform that is a folder gets JSON, in which what the user provided is apart", async () => {
  const values = { colour: "blue", cluster_name: "mine", deep: { password: "x" } };
  expect(await configuration(added(values))).toMatchObject({ ...base, extra_config: values });
});

test("of a complete configuration, the keys of the base stay there", async () => {
  const values = {
    ...base,
    bootstrap_url: "http://10.0.0.1:18080",
    resolvers: ["1.1.1.1"],
    colour: "blue",
  };
  expect(await configuration({ kind: "complete", values })).toMatchObject({
    ...base,
    resolvers: ["1.1.1.1"],
    extra_config: { colour: "blue" },
  });
});

test("the scripts that print a node's addresses are executable, unless the user provides them", async () => {
  const own = {
    source: "/own",
    device: 1,
    inode: 2,
    modifiedMs: 3,
    target: "ip-detect",
    mode: 0o700,
    sizeBytes: 1,
  };
  const plan = { ...examplePlan("/a", { variant: "none" }), ...exampleTraits };
  const cluster = exampleCluster([node("master", "10.0.0.1")], "none");
  const facts = { resolvers: ["10.0.0.53"], bootstrapUrl, layout: folderLayout(), release: "1.0" };
  const generate = async (changes: Partial<typeof plan>) =>
    genconfFiles({ ...plan, ...changes }, cluster, facts);
  const modes = async (changes: Partial<typeof plan>) =>
    (await generate(changes)).map(({ path, mode }) => [path, mode]);
  const configured = ["config.yaml", 0o600];
  expect(await modes({})).toEqual([configured, ["ip-detect", 0o755]]);
  expect(await modes({ ipDetectPublic: "#!/bin/sh\n", genconfFiles: [own] })).toEqual([
    configured,
    ["ip-detect-public", 0o755],
    ["ip-detect", 0o700],
  ]);
  const key = "ip_detect_public_filename";
  expect(JSON.stringify(await generate({ genconfFiles: [own] }))).not.toContain(key);
  const ownPublic = { ...own, target: "ip-detect-public" };
  expect(JSON.stringify(await generate({ genconfFiles: [own, ownPublic] }))).toContain(key);
});
