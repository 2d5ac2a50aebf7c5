import { FetchHttpHandler } from "@smithy/fetch-http-handler";
import type { CredentialSource } from "../../src/backend/cloud/credentials/credential-source.ts";
import { findCredentials } from "../../src/backend/cloud/credentials/credentials.ts";
import { readProfile } from "../../src/backend/cloud/credentials/profile.ts";
import { readSettings } from "../../src/backend/cloud/credentials/settings.ts";
import type { Environment } from "../../src/system/runtime.ts";
import { neverAborted } from "./never-aborted.ts";

/** Chooses the source of credentials on a machine that has only these variables. */
export async function findSource(
  environment: Environment,
  signal: AbortSignal = neverAborted,
): Promise<CredentialSource> {
  const given = { HOME: "/nonexistent", ...environment };
  const profile = await readProfile(given);
  const settings = await readSettings(given, profile);
  const requestHandler = new FetchHttpHandler({});
  return await findCredentials(
    { environment: given, profile, settings, region: "us-west-2", requestHandler },
    signal,
  );
}
