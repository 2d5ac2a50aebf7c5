import type { NodeFacts } from "../../src/backend/vm/cluster-facts.ts";

/** What a cluster's folder says of a virtual machine: the first master, unless something else is given. */
export const machineNode = (change: Partial<NodeFacts> = {}): NodeFacts => ({
  id: "vm-01234567-0",
  role: "master",
  index: 0,
  privateAddress: "10.93.0.2",
  ports: { ssh: 4000, http: 4001, https: 4002 },
  ...change,
});

/** A master and an agent. */
export const machineNodes: readonly NodeFacts[] = [
  machineNode(),
  machineNode({ id: "vm-01234567-1", role: "agent", privateAddress: "10.93.0.3" }),
];
