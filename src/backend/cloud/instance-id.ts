import * as read from "../../model/reader.ts";

/** `i-0123456789abcdef0`, or the shorter form of old accounts. */
export const parseInstanceId = read.matching(/^i-[0-9a-f]{8,17}$/);
