import type { Backend } from "../../backend/contract.ts";
import { type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import type { Observed } from "../../platform/faults/fault-kind.ts";
import {
  type Observation,
  type ObserveRequest,
  observeNode,
} from "../../platform/faults/node-faults.ts";
import type { Connection } from "../../ssh/connection/connection.ts";
import type { Work } from "../../system/runtime.ts";
import { type MaskedConnections, assertKeyIsHere, openMaskedConnections } from "../connections.ts";
import { findCluster } from "../find-cluster.ts";
import type { EffectContext } from "./platform-effect.ts";
import { untilRecovered } from "./until-recovered.ts";

export interface FaultSession extends AsyncDisposable, EffectContext {
  untilRecovered(signal: AbortSignal): Promise<void>;
  connect(
    node: NodeRecord,
    signal: AbortSignal,
  ): Promise<{ readonly connection: Connection; readonly reference: string }>;
  observe(
    node: NodeRecord,
    request: ObserveRequest,
    signal: AbortSignal,
  ): Promise<Observation & Observed>;
}

export async function openSession(
  work: Work,
  backend: Backend<unknown>,
  clusterId: string,
): Promise<FaultSession> {
  const cluster = await findCluster(backend, clusterId, work.signal);
  await assertKeyIsHere(cluster);
  const connections: MaskedConnections = openMaskedConnections(cluster, work);
  const connect: FaultSession["connect"] = async (node, inner) => ({
    connection: await connections.connect(node, inner),
    reference: nodeReference(node),
  });
  return {
    cluster,
    runtime: work,
    connections,
    connect,
    untilRecovered: async (inner) =>
      untilRecovered({ ...work, signal: inner }, backend, { clusterId }),
    observe: async (node, request, inner) => {
      const found = await observeNode(await connect(node, inner), request, inner);
      return { ...found, hereMs: work.clock.now() };
    },
    [Symbol.asyncDispose]: async () => connections[Symbol.asyncDispose](),
  };
}
