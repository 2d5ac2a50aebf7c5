import { layoutOf } from "../support/layout-of.ts";
/** Simple causes of errors, for the table of their texts. */
import { callFailure } from "../../src/backend/cloud/api/api-errors.ts";
import type { CloudApi } from "../../src/backend/cloud/api/api.ts";
import type { OpenRegion } from "../../src/backend/cloud/api/open-api.ts";
import { withRegionAdvice } from "../../src/backend/cloud/api/region-advice.ts";
import { engineFailure } from "../../src/backend/container/engine/engine-errors.ts";
import { engineKinds } from "../../src/backend/container/engine/engine-kinds.ts";
import { qemuFailure } from "../../src/backend/vm/qemu/qemu.ts";
import { findCluster } from "../../src/cluster/find-cluster.ts";
import type { ClusterError } from "../../src/errors.ts";
import type { NodeRecord } from "../../src/model/cluster-record.ts";
import { parseHead } from "../../src/platform/artifact/artifact-head.ts";
import { syncCheckoutToNode } from "../../src/platform/checkout/checkout-sync.ts";
import { generate } from "../../src/platform/install/genconf.ts";
import type { PhaseContext } from "../../src/platform/install/phase.ts";
import type { NodeAnswer } from "../../src/platform/readiness/ask-node.ts";
import { connectFailure, type ServerOffer } from "../../src/ssh/connection/connection-errors.ts";
import { failureOf } from "../support/failure-of.ts";
import { exampleCluster } from "../support/install-example.ts";
import { neverAborted } from "../support/never-aborted.ts";

export const target = { name: "master_0", host: "192.0.2.1", port: 22, user: "admin" };
export const master = {
  id: "i-1",
  role: "master",
  index: 0,
  state: "running",
  ssh: target,
} as unknown as NodeRecord;
export const cluster = exampleCluster([master], "enterprise");
export const dockerSays = (stderr: string, ...words: readonly string[]) =>
  engineFailure(engineKinds.docker, words, { status: 1, stdout: "", stderr });
export const qemuSays = (stderr: string) =>
  qemuFailure("qemu-img info", { status: 1, stdout: "", stderr });
export const sshFails = (error: object, offer?: ServerOffer) =>
  connectFailure(target, Object.assign(new Error(""), error), { mayStillBoot: false, offer });
export const head = (text: string) =>
  parseHead({ bytes: Buffer.from(text), sizeBytes: text.length }, "a.sh");

/** A connection on which every command ends like this. */
const ending = (status: number, stdout: string, stderr: string) =>
  ({
    run: async () => ({ status, stdout, stderr }),
    upload: async () => {},
  }) as unknown as PhaseContext["connection"];
export const sync = async (status: number, stdout: string, stderr: string) => {
  const contents = new Map([["cluster", { tests: [], library: [] }]]);
  const checkout = { folder: "/checkout", variant: "enterprise", contents } as never;
  const layouts = [layoutOf("cluster")];
  const node = {
    connection: ending(status, stdout, stderr),
    reference: "master_0",
    layouts,
    variant: "enterprise",
  };
  return syncCheckoutToNode(checkout, { ...node, checksum: false } as never, neverAborted);
};
export const genconf = async (status: number, stdout: string, stderr: string) => {
  const connection = {
    ...ending(0, "", ""),
    run: async ({ argv }: { readonly argv: readonly string[] }) =>
      argv.includes("e2e-genconf-folders")
        ? { status: 0, stdout: "", stderr: "" }
        : { status, stdout, stderr },
  };
  const step = { update: () => {} };
  return generate([]).run(
    { node: master, reference: "master_0", connection, step } as never,
    neverAborted,
  );
};
export const api = { region: "us-west-2", call: async () => ({}) } as unknown as CloudApi;
export const answer = (code: string, message: string, httpStatusCode = 400): ClusterError => {
  const error = Object.assign(new Error(message), {
    name: code,
    $metadata: { httpStatusCode, requestId: "r-1" },
  });
  const context = {
    region: "us-west-2",
    credentialSource: "the variables",
    renewal: "Renew the session, and set the variables again.",
    endpoint: undefined,
    proxy: undefined,
  };
  return callFailure(error, { ...context, action: "RunInstances", clockOffSeconds: 0 });
};
export const elsewhere = async () => {
  const regions = { Regions: [{ RegionName: "us-west-2" }, { RegionName: "us-east-1" }] };
  const open = (() => ({ ...api, call: async () => regions })) as unknown as OpenRegion;
  return withRegionAdvice(
    open,
    "mars-1",
    async () => Promise.reject(answer("OptInRequired", "Not for you.")),
    neverAborted,
  );
};
export const search = async (scopes: readonly string[]) => {
  const findElsewhere = async () => ({ scopes, unreachable: [] });
  const scope = { kind: "region", name: "us-east-1", option: "region", findElsewhere };
  const backend = { scope, find: async () => undefined };
  return findCluster(backend, "base", neverAborted);
};
export const failed = (reason: string, log: readonly string[]): NodeAnswer =>
  ({ node: master, verdict: { kind: "failed", reason, log } }) as unknown as NodeAnswer;

export type Failing = () => unknown;

/** The error that is returned, thrown, or the reason of a rejected promise. */
export async function errorOf(fails: Failing): Promise<Error & Partial<ClusterError>> {
  const outcome = async (): Promise<never> => {
    throw await fails();
  };
  return failureOf(outcome());
}
