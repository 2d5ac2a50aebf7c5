import { shellText } from "../../ssh/shell-text.ts";
import { ipDetectOf } from "../shared/node-scripts.ts";
import findInnerAddress from "./find-inner-address.sh" with { type: "text" };

/** Private addresses of nodes: 10.93.0.2, 10.93.0.3, …; each cluster has its own network, so all clusters can use the same addresses. */
const prefix = "10.93";
const networkBits = 16;

/** Returns the address of the node at this place in the launch order. */
export function privateAddress(place: number): string {
  const number = place + 2;
  return `${prefix}.${Math.floor(number / 256)}.${number % 256}`;
}

export const privateAddressWithBits = (place: number): string => `${privateAddress(place)}/${networkBits}`;

/** Prints the node's private IPv4 address. */
export const ipDetect = ipDetectOf(
  shellText(findInnerAddress, { PREFIX: prefix.replace(".", "\\."), BITS: networkBits }),
);
