import { homedir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../../../system/environment.ts";

/** The credentials file and the config file that the cloud's own tools share. */
export interface SharedFiles {
  readonly filepath: string;
  readonly configFilepath: string;
}

export function sharedFiles(environment: Environment): SharedFiles {
  const folder = join(environment["HOME"] ?? homedir(), ".aws");
  return {
    filepath: environment["AWS_SHARED_CREDENTIALS_FILE"] ?? join(folder, "credentials"),
    configFilepath: environment["AWS_CONFIG_FILE"] ?? join(folder, "config"),
  };
}

/**
 * Whether the default profile says where credentials are. The SDK alone cannot tell, because it answers "could not resolve" in two cases: for a
 * missing profile, where the next source is tried, and for a profile that fails, which must be reported.
 */
export async function hasDefaultProfile(files: SharedFiles): Promise<boolean> {
  const { parseKnownFiles } = await import("@smithy/core/config");
  const profiles = await parseKnownFiles({ ...files, ignoreCache: true });
  return Object.keys(profiles["default"] ?? {}).some((setting) => credentialSetting.test(setting));
}

const credentialSetting =
  /^(?:aws_access_key_id|credential_process|sso_\w+|role_arn|web_identity_token_file|login_session)$/;
