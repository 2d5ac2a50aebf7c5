/** Shows whether a program has left its caller's streams as they were. Linux only, for /proc. */

/** Why tests of streams can't run here; undefined if they can. */
export const streamsLack: string | undefined =
  process.platform === "linux" ? undefined : "no /proc";

/** Kinds of streams, each with a line of bash that runs the function `body` on them. Programs on Bun and Node give their children sockets. */
export const streamKinds = {
  pipe: "echo y | body 2> >(cat >/dev/null) | cat >/dev/null",
  "one pipe": "echo y | body 2>&1 | cat >/dev/null",
  file: "body 0<<<y 1>>out 2>&1",
  inherited: "body",
} as const;

/**
 * Returns a bash script that runs some lines on streams of one kind. Afterwards, and wherever the lines call `report`, it writes `blocking` or `non-blocking`
 * to `$REPORT`, once for each stream.
 */
export function streamsScript(kind: keyof typeof streamKinds, lines: string): string {
  return `
    report() {
      local own=$BASHPID fd flags
      for fd in 0 1 2; do
        flags=$(sed -n 's/^flags:[[:space:]]*//p' "/proc/$own/fdinfo/$fd")
        if (( flags & 04000 )); then echo non-blocking; else echo blocking; fi >>"$REPORT"
      done
    }
    body() {
      ${lines}
      report
    }
    cd "$FOLDER" || exit
    ${streamKinds[kind]}
    wait
  `;
}
