import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { quote } from "../quote.ts";

/** Tells of an `ssh` that has ended whether it had logged in. Its exit status cannot: 255 may be the remote command's own. */
export interface LoginMark extends AsyncDisposable {
  /** Words for ssh's command line. */
  readonly options: readonly string[];
  /** What ssh has to find in its environment: it hands LocalCommand to the user's shell, which may be any program. */
  readonly environment: Readonly<Record<string, string>>;
  isSet(): boolean;
}

/**
 * ssh itself makes an empty file as soon as it has logged in, before the remote command begins. `path` must be free and in a folder of this
 * user's; nothing is left there. https://man.openbsd.org/ssh_config#LocalCommand
 */
export function createLoginMark(path: string): LoginMark {
  const command = `: >${quote([path])}`.replaceAll("%", "%%");
  return {
    options: ["-o", "PermitLocalCommand=yes", "-o", `LocalCommand=${command}`],
    environment: { SHELL: "/bin/sh" },
    isSet: () => existsSync(path),
    [Symbol.asyncDispose]: () => rm(path, { force: true }),
  };
}
