import { shellText } from "../../ssh/shell-text.ts";
import { ipDetectOf, privateAddressLines } from "../ip-detect.ts";
import findPublicAddress from "./find-public-address.sh" with { type: "text" };

/** Prints the node's public IPv4 address, or the private one if it has none. */
export const ipDetectPublic = ipDetectOf(privateAddressLines, shellText(findPublicAddress));
