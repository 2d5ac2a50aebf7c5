import type { CreationRequest } from "./backend.ts";

type Asked<Creation> = Pick<
  CreationRequest<Creation>,
  "distribution" | "creation" | "counts" | "needsCgroups1" | "imagePreparation"
>;
export type Resolve<Creation, Resolved> = (request: Asked<Creation>, signal: AbortSignal) => Promise<Resolved>;

interface KeptResolution<Creation, Resolved> {
  /** For `plan`. */
  readonly find: Resolve<Creation, Resolved>;
  /** For the `provision` that follows: what plan has found out needn't be asked again. */
  readonly take: Resolve<Creation, Resolved>;
}

/** Kept for one use, since a library's backend may live for hours. */
export function keptResolution<Creation, Resolved>(
  resolve: Resolve<Creation, Resolved>,
): KeptResolution<Creation, Resolved> {
  const kept = new Map<string, Resolved>();
  const keyOf = ({ distribution, creation, counts, needsCgroups1, imagePreparation }: Asked<Creation>): string =>
    JSON.stringify([distribution, creation, counts, needsCgroups1, imagePreparation]);
  return {
    find: async (request, signal) => {
      const resolved = await resolve(request, signal);
      kept.set(keyOf(request), resolved);
      return resolved;
    },
    take: async (request, signal) => {
      const key = keyOf(request);
      const resolved = kept.get(key) ?? (await resolve(request, signal));
      kept.delete(key);
      return resolved;
    },
  };
}
