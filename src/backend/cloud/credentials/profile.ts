import { stat } from "node:fs/promises";
import { join } from "node:path";
import { ClusterError } from "../../../errors.ts";
import { outside } from "../../../outside-text.ts";
import { homeFolder } from "../../../store/state-folder.ts";
import { readOwnText, unreadableReason } from "../../../system/files/read-text.ts";
import type { Environment } from "../../../system/runtime.ts";
import { variable } from "../../../system/variable.ts";

type Section = Readonly<Record<string, string | undefined>>;

/**
 * A profile of the files that all tools of the cloud share. Credentials, endpoint and all other
 * settings come from this one.
 */
export interface Profile {
  readonly name: string;
  /** Names the profile in messages: `profile "dev" (CLOUD_PROFILE)`. */
  readonly shown: string;
  /** The variable that names the profile. If there is none, it is `default`. */
  readonly variable: string | undefined;
  readonly settings: Section;
  /** The sections of both files by name: profiles, and others such as `services.NAME` and `sso-session.NAME`. */
  readonly sections: Readonly<Record<string, Section | undefined>>;
  /** The headers of the config file's sections, as they are written, also those that aren't read. */
  readonly headers: readonly string[];
  /** The files that couldn't be read, and why: `/home/me/.aws/config: the file does not exist`. */
  readonly unread: readonly { readonly file: string; readonly reason: string }[];
  readonly files: SharedFiles;
}

/** In the form in which the SDK's providers get them. */
interface SharedFiles {
  readonly filepath: string;
  readonly configFilepath: string;
}

/**
 * Reads the profile that CLOUD_PROFILE or AWS_PROFILE names, or else `default`. With keys in
 * CLOUD_ACCESS_KEY_ID, AWS_PROFILE doesn't count: it may belong to another account. Throws
 * `machine-not-set-up` if a file is a pipe.
 */
export async function readProfile(environment: Environment): Promise<Profile> {
  const hasOwnKeys = variable(environment, "CLOUD_ACCESS_KEY_ID") !== undefined;
  const names = hasOwnKeys ? ["CLOUD_PROFILE"] : ["CLOUD_PROFILE", "AWS_PROFILE"];
  const chosen = names.find((candidate) => variable(environment, candidate) !== undefined);
  const name = variable(environment, chosen ?? "") ?? "default";
  const files = sharedFiles(environment);
  await Promise.all([files.configFilepath, files.filepath].map(assertNoPipe));
  const { loadSharedConfigFiles } = await import("@smithy/core/config");
  const { configFile, credentialsFile } = await loadSharedConfigFiles({
    ...files,
    ignoreCache: true,
  });
  const sectionNames = [...Object.keys(configFile), ...Object.keys(credentialsFile)];
  const sections = Object.fromEntries(
    sectionNames.map((section) => [
      section,
      { ...configFile[section], ...credentialsFile[section] },
    ]),
  );
  const shown = `profile "${name}" ${chosen === undefined ? "of the shared credentials file" : `(${chosen})`}`;
  const settings = sections[name] ?? {};
  const [config, credentials] = await Promise.all([
    readShared(files.configFilepath),
    readShared(files.filepath),
  ]);
  const unread = [config, credentials].filter((each) => each.reason !== "");
  const headers = headersIn(config.text);
  return { name, shown, variable: chosen, settings, sections, headers, unread, files };
}

/** The SDK takes a file that it can't read for an empty one. */
async function readShared(file: string) {
  try {
    return { file, text: await readOwnText(file), reason: "" };
  } catch (error) {
    return { file, text: "", reason: unreadableReason(error) };
  }
}

/** The SDK would wait for ever for a pipe that nobody writes to, and finds nothing when it reads one again. */
async function assertNoPipe(file: string): Promise<void> {
  const found = await stat(file).catch(() => undefined);
  if (found?.isFIFO() !== true) return;
  throw new ClusterError("machine-not-set-up", `${outside(file)} is a pipe.`, {
    hint: "Settings and credentials of the cloud are read more than once: write them to a file, and name that instead.",
    facts: { file },
  });
}

const headersIn = (text: string): readonly string[] =>
  text.split(/\r?\n/).flatMap((line) => /^\s*\[([^\]]*)\]/.exec(line)?.[1] ?? []);

function sharedFiles(environment: Environment): SharedFiles {
  const home = homeFolder(environment);
  const path = (name: string, usual: string): string =>
    (variable(environment, name) ?? join(home, ".aws", usual)).replace(/^~(?=\/)/, home);
  return {
    filepath: path("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
    configFilepath: path("AWS_CONFIG_FILE", "config"),
  };
}

/** The profile and those that it takes its credentials from, which is the last one. */
export function sourceProfiles({
  name,
  sections,
}: Pick<Profile, "name" | "sections">): readonly string[] {
  const names = [name];
  for (const each of names) {
    const source = sections[each]?.["source_profile"];
    if (source !== undefined && !names.includes(source)) names.push(source);
  }
  return names;
}

export const sourceSettings = (profile: Profile): readonly Profile["settings"][] =>
  sourceProfiles(profile).map((name) => profile.sections[name] ?? {});

const credentialSetting =
  /^(?:aws_access_key_id|credential_process|sso_\w+|role_arn|web_identity_token_file|login_session)$/i;

/**
 * Whether a profile says where credentials are. If not, the next source counts. If so, and it
 * fails, that must be reported.
 */
export const namesCredentials = ({ settings }: Pick<Profile, "settings">): boolean =>
  Object.keys(settings).some((setting) => credentialSetting.test(setting));
