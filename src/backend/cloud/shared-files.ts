import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../../system/environment.ts";

/** The credentials and the config file that the cloud's own tools share. */
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
 * Whether the default profile says where credentials are. Looked up here, because the SDK answers "could not resolve" both for a profile that
 * isn't there, where the next source should be tried, and for one that is there and fails, where its failure should be told.
 */
export async function hasDefaultProfile(files: SharedFiles): Promise<boolean> {
  const texts = await Promise.all([files.filepath, files.configFilepath].map(readIfPresent));
  return texts.some((text) => defaultSection(text).some((line) => credentialSetting.test(line)));
}

const credentialSetting =
  /^\s*(?:aws_access_key_id|credential_process|sso_\w+|role_arn|web_identity_token_file|login_session)\s*=/;
const sectionTitle = /^\s*\[\s*(?:profile\s+)?"?([^\]"]*?)"?\s*\]/;

function defaultSection(text: string): readonly string[] {
  const sections = text.split(/^(?=\s*\[)/m).map((section) => section.split("\n").filter((line) => line.trim() !== ""));
  return sections
    .filter((lines) => sectionTitle.exec(lines[0] ?? "")?.[1] === "default")
    .flatMap((lines) => lines.slice(1));
}

async function readIfPresent(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch {
    return "";
  }
}
