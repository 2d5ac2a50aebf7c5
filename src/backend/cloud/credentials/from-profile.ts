import { OwnError } from "../../../errors.ts";
import { type CredentialPlace, type CredentialSource, stsClient } from "./credential-source.ts";
import { askContainerService, containerService } from "./container-role.ts";
import { type Identity, findMachineRole } from "./machine-role.ts";
import { runCredentialProcess } from "./process-credentials.ts";
import { profileFault, profileHint } from "./profile-faults.ts";
import { sourceProfiles, sourceSettings } from "./profile.ts";

/** The profile's credentials. The SDK gets them, except where it may wait for ever. */
export function fromProfile(place: CredentialPlace): CredentialSource {
  const { profile, requestHandler } = place;
  const hint = profileHint(profile);
  return {
    name: profile.shown,
    profile: profile.name,
    provide: async () => {
      const fault = profileFault(profile);
      if (fault !== undefined) throw new OwnError(fault.problem);
      const first = ownSource(place);
      if (first !== undefined) return await assumeRoles(place, await first());
      const { fromIni } = await import("@aws-sdk/credential-provider-ini");
      const provider = fromIni({
        profile: profile.name,
        ...profile.files,
        ignoreCache: true,
        ...(await profileClients(place)),
      });
      return await provider({
        callerClientConfig: { region: async () => place.region, requestHandler },
      });
    },
    // It may start a program that asks a person.
    limitMs: undefined,
    hint: `Check this profile in ${profile.files.filepath} and ${profile.files.configFilepath}. ${hint}`,
    renewal: hint,
  };
}

/**
 * The clients of a profile's providers. They have no region of their own: sign-on takes place in
 * the region that the profile names for it. The SDK has no way to give its two clients for SSO
 * different endpoints.
 */
async function profileClients(place: CredentialPlace) {
  const { profile, settings, requestHandler } = place;
  const { getDefaultRoleAssumer, getDefaultRoleAssumerWithWebIdentity } =
    await import("@aws-sdk/nested-clients/sts");
  const sts = stsClient(place, profile.settings["region"] ?? place.region);
  const isLogin = sourceSettings(profile).some((each) => each["login_session"] !== undefined);
  const endpoint = settings.endpointOf(isLogin ? "SIGNIN" : "SSO");
  return {
    clientConfig: {
      ...settings.client,
      requestHandler,
      ...(endpoint !== undefined && { endpoint: endpoint.url }),
    },
    roleAssumer: getDefaultRoleAssumer(sts),
    roleAssumerWithWebIdentity: getDefaultRoleAssumerWithWebIdentity(sts),
  };
}

/**
 * The first credentials of a profile, where the SDK has none or would wait for them too long. With
 * these, the roles of the profile are assumed one after the other. The SDK tells what is wrong with
 * other combinations.
 */
function ownSource(place: CredentialPlace): (() => Promise<Identity>) | undefined {
  const { profile, environment } = place;
  const all = sourceSettings(profile);
  const [base = {}, ...others] = all.toReversed();
  const isLeftToSdk =
    base["source_profile"] !== undefined ||
    all.some((each) => each["mfa_serial"] !== undefined) ||
    all.slice(1).some((each) => each["aws_access_key_id"] !== undefined) ||
    !others.every((each) => each["role_arn"] !== undefined && !each["credential_source"]);
  if (isLeftToSdk) return undefined;
  const isOfMachine = base["credential_source"] === "Ec2InstanceMetadata";
  if (isOfMachine && all[0]?.["role_arn"] !== undefined) return async () => fromMachine(place);
  const isOfContainer = base["credential_source"] === "EcsContainer";
  if (
    isOfContainer &&
    base["role_arn"] !== undefined &&
    containerService(environment) !== undefined
  )
    return async () => askContainerService(environment);
  const command = base["credential_process"];
  // These come first.
  const first = ["role_arn", "aws_access_key_id", "web_identity_token_file"];
  if (command === undefined || first.some((each) => base[each] !== undefined)) return undefined;
  const name = sourceProfiles(profile).at(-1) ?? profile.name;
  return async () => runCredentialProcess(name, command, environment);
}

/**
 * The SDK would ask the metadata service for minutes where packets to it are dropped, and by this
 * process's variables.
 */
async function fromMachine({ environment, profile }: CredentialPlace): Promise<Identity> {
  const provide = await findMachineRole(environment, profile, new AbortController().signal);
  if (provide !== undefined) return await provide();
  throw new OwnError(
    "credential_source is Ec2InstanceMetadata, but no metadata service answers on this computer",
  );
}

async function assumeRoles(place: CredentialPlace, first: Identity): Promise<Identity> {
  const roles = sourceSettings(place.profile).filter((each) => each["role_arn"] !== undefined);
  if (roles.length === 0) return first;
  const { roleAssumer } = await profileClients(place);
  const latest = { identity: first };
  for (const role of roles.toReversed())
    latest.identity = await roleAssumer(latest.identity, {
      RoleArn: role["role_arn"],
      RoleSessionName: role["role_session_name"] ?? `cluster-e2e-${Date.now()}`,
      ExternalId: role["external_id"],
      DurationSeconds: Number(role["duration_seconds"] ?? 3600),
    });
  return latest.identity;
}
