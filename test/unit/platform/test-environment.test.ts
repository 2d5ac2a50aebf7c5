import { expect, test } from "bun:test";
import type { NodeRecord, NodeState, Role } from "../../../src/model/cluster-record.ts";
import { clusterLayout } from "../../../src/platform/layouts/cluster.ts";
import { folderLayout } from "../../../src/platform/layouts/folder.ts";
import { dcosLayout } from "../../../src/platform/layouts/dcos.ts";
import { loginVariables, testEnvironment } from "../../../src/platform/test-environment.ts";

const node = (
  role: Role,
  index: number,
  privateAddress: string,
  state: NodeState = "running",
): NodeRecord => ({
  id: `i-${privateAddress}`,
  role,
  index,
  state,
  publicAddress: `203.0.113.${index}`,
  privateAddress,
  ssh: { host: `203.0.113.${index}`, port: 22, user: "debian" },
  web: { host: `203.0.113.${index}`, httpPort: 80, httpsPort: 443 },
});

const cluster = {
  nodes: [
    node("master", 0, "10.0.0.1"),
    node("master", 1, "10.0.0.2"),
    node("master", 2, "10.0.0.9", "ended"),
    node("agent", 0, "10.0.0.3"),
    node("agent", 1, "10.0.0.4"),
    node("public_agent", 0, "10.0.0.5"),
  ],
};
const target = node("agent", 0, "10.0.0.3");
const nobody = { name: undefined, password: undefined };

test("the cluster layout's environment", () => {
  expect(testEnvironment({ cluster, target, layout: clusterLayout, login: nobody })).toEqual({
    variables: {
      MASTER_HOSTS: "10.0.0.1,10.0.0.2",
      PUBLIC_MASTER_HOSTS: "10.0.0.1,10.0.0.2",
      SLAVE_HOSTS: "10.0.0.3,10.0.0.4",
      PUBLIC_SLAVE_HOSTS: "10.0.0.5",
      CLUSTER_DNS_ADDRESS: "http://10.0.0.3",
      CLUSTER_NUM_MASTERS: "2",
      CLUSTER_NUM_AGENTS: "3",
    },
    workingDirectory: "/opt/cluster/active/integration-test",
    environmentFile: "/opt/cluster/environment.export",
  });
});

test("under the dcos layout the same values stand also under its own names", () => {
  const login = { name: "admin", password: "secret" };
  const { variables } = testEnvironment({ cluster, target, layout: dcosLayout, login });
  for (const name of ["LOGIN_UNAME", "LOGIN_PW", "DNS_ADDRESS", "NUM_MASTERS", "NUM_AGENTS"]) {
    expect(variables[`CLUSTER_${name}`]).toBeString();
    expect(variables[`DCOS_${name}`]).toBe(variables[`CLUSTER_${name}`]);
  }
  expect(Object.keys(variables)).toHaveLength(14);
});

test("a cluster without agents has empty lists", () => {
  const { variables } = testEnvironment({
    cluster: { nodes: [node("master", 0, "10.0.0.1")] },
    target: node("master", 0, "10.0.0.1"),
    layout: clusterLayout,
    login: nobody,
  });
  expect(variables).toMatchObject({
    SLAVE_HOSTS: "",
    PUBLIC_SLAVE_HOSTS: "",
    CLUSTER_NUM_AGENTS: "0",
  });
});

test.each([
  [["master", "agent", "public_agent"], undefined],
  [["master", "agent"], "false"],
  [["master", "public_agent"], "false"],
] as const)("of %j alone the dcos layout's tests are told WAIT_FOR_HOSTS=%p", (roles, value) => {
  const nodes = roles.map((role, index) => node(role, index, `10.0.0.${index}`));
  const { variables } = testEnvironment({
    cluster: { nodes },
    target,
    layout: dcosLayout,
    login: nobody,
  });
  expect(variables["WAIT_FOR_HOSTS"]).toBe(value);
});

test.each([
  [nobody, {}],
  [{ name: "admin", password: undefined }, { CLUSTER_LOGIN_UNAME: "admin" }],
  [{ name: undefined, password: "" }, { CLUSTER_LOGIN_PW: "" }],
])("of the login %j only what was given is set", (login, variables) => {
  expect(loginVariables(login, clusterLayout)).toEqual(variables);
});

test("a platform that is a folder has its own environment file, and a folder to work in that exists", () => {
  const input = {
    cluster,
    target,
    layout: folderLayout(),
    login: { name: "me", password: undefined },
  };
  const environment = {
    variables: { CLUSTER_LOGIN_UNAME: "me" },
    workingDirectory: "/opt/cluster-platform/folder/tests",
    environmentFile: "/opt/cluster-platform/environment",
  };
  expect(testEnvironment(input)).toEqual(environment);
  expect(testEnvironment({ ...input, folder: "/x" })).toEqual({
    ...environment,
    workingDirectory: "/x",
  });
});
