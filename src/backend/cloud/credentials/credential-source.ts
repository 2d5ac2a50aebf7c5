import type { FetchHttpHandler } from "@smithy/fetch-http-handler";
import type { Environment } from "../../../system/runtime.ts";
import type { Identity } from "./machine-role.ts";
import type { Profile } from "./profile.ts";
import type { CloudSettings } from "./settings.ts";

/** A source of credentials. */
export interface CredentialSource {
  /** Names the source in messages: `profile "dev" (CLOUD_PROFILE)`. */
  readonly name: string;
  readonly profile: string | undefined;
  readonly provide: () => Promise<Identity>;
  /** A source that may prompt a person has no limit. */
  readonly limitMs: number | undefined;
  /** What to do if the source turns out to have no credentials. */
  readonly hint: string;
  /** What to do when the credentials have expired. */
  readonly renewal: string;
}

export interface CredentialPlace {
  readonly environment: Environment;
  readonly profile: Profile;
  readonly settings: CloudSettings;
  /**
   * The cluster's region. Services that issue credentials are asked there, if neither the profile
   * nor they themselves name another.
   */
  readonly region: string;
  /** For providers that send requests. */
  readonly requestHandler: FetchHttpHandler;
}

/** How the service that issues credentials for roles is asked. */
export function stsClient({ settings, requestHandler }: CredentialPlace, region: string) {
  const endpoint = settings.endpointOf("STS");
  return {
    ...settings.client,
    region,
    requestHandler,
    ...(endpoint !== undefined && { endpoint: endpoint.url }),
  };
}
