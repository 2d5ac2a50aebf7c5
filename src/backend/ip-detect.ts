import { shellText } from "../ssh/shell-text.ts";
import findAddress from "./find-address.sh" with { type: "text" };

/** A program that prints the address that these lines find. */
export const ipDetectOf = (...lines: readonly string[]): string => `#!/bin/sh\n${lines.join("")}echo "$address"\n`;

/** Shell lines that set `address` to the node's private IPv4 address. */
export const privateAddressLines = shellText(findAddress);

/** Prints the node's private IPv4 address. */
export const ipDetect = ipDetectOf(privateAddressLines);
