/** Whether the shared files of the cloud's own tools contain credentials. */
import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  namesCredentials,
  readProfile,
} from "../../../../src/backend/cloud/credentials/profile.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const keys = "aws_access_key_id = AK\naws_secret_access_key = SK\n";

test.each([
  ["a default profile with keys", { credentials: `[default]\n${keys}` }, true],
  [
    "one among others, with comments",
    { credentials: `[dev]\n${keys}# mine\n[default] ; of all\n  ${keys}` },
    true,
  ],
  ["a default profile of the config file", { config: "[default]\nsso_session = work\n" }, true],
  [
    "one that is written as the others are",
    { config: '[profile "default"]\ncredential_process = /bin/keys\n' },
    true,
  ],
  ["Windows line ends", { config: "[profile default]\r\nrole_arn = arn:1\r\n" }, true],
  ["no files", {}, false],
  [
    "other profiles only",
    { credentials: `[dev]\n${keys}`, config: `[profile dev]\n${keys}` },
    false,
  ],
  ["a default profile with a region only", { config: "[default]\nregion = us-west-2\n" }, false],
  [
    "a default profile with an empty key",
    { credentials: "[default]\naws_access_key_id =\n" },
    false,
  ],
  ["a commented one", { credentials: `#[default]\n${keys}` }, false],
  ["a session of that name", { config: "[sso-session default]\nsso_region = us-west-2\n" }, false],
] as const)(
  "%s",
  async (_, texts: { readonly credentials?: string; readonly config?: string }, expected) => {
    await using folder = await scratchFolder();
    const files = {
      filepath: join(folder.path, "credentials"),
      configFilepath: join(folder.path, "config"),
    };
    if (texts.credentials !== undefined) await writeFile(files.filepath, texts.credentials);
    if (texts.config !== undefined) await writeFile(files.configFilepath, texts.config);
    const environment = {
      AWS_SHARED_CREDENTIALS_FILE: files.filepath,
      AWS_CONFIG_FILE: files.configFilepath,
    };
    expect(namesCredentials(await readProfile(environment))).toBe(expected);
  },
);

test.each(["AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"])(
  "%s that names a pipe is refused at once, since it would be read twice",
  async (name) => {
    await using folder = await scratchFolder();
    const pipe = join(folder.path, "pipe");
    await Bun.$`mkfifo ${pipe}`;
    const others = { AWS_SHARED_CREDENTIALS_FILE: "/dev/null", AWS_CONFIG_FILE: "/dev/null" };
    const failure = await failureOf(readProfile({ ...others, [name]: pipe }));
    expect([failure.id, failure.message]).toEqual(["machine-not-set-up", `${pipe} is a pipe.`]);
  },
);
