/** Runs a docker command and returns its output. If it fails, throws an error with docker's message. */
export async function docker(
  words: readonly string[],
  stdin: Uint8Array | undefined,
): Promise<string> {
  const child = Bun.spawn(["docker", ...words], {
    stdin: stdin ?? "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (status !== 0) throw new Error(`docker ${words[0]} failed (${status}): ${stderr.trim()}`);
  return stdout.trim();
}

export interface ContainerEnd {
  readonly instanceId: string;
  readonly exitCode: number;
}

interface DieEvent {
  readonly Actor: { readonly Attributes: Readonly<Record<string, string>> };
}

/** Reports each container with this label that ends, until it is disposed of. */
export function watchContainerEnds(
  labels: { readonly cloud: string; readonly instance: string },
  ended: (end: ContainerEnd) => void,
): AsyncDisposable {
  const child = Bun.spawn(
    [
      // The shell ends docker when its stdin is closed, which also happens if this process is killed.
      "sh",
      "-c",
      'docker events "$@" & cat >/dev/null; kill $!',
      "watch",
      // docker starts listening with a delay. Events since then are reported as well.
      `--since=${Math.floor(Date.now() / 1000)}`,
      "--filter=type=container",
      "--filter=event=die",
      `--filter=label=${labels.cloud}`,
      "--format={{json .}}",
    ],
    { stdin: "pipe", stdout: "pipe", stderr: "ignore" },
  );
  const following = followLines(child.stdout, (line) => {
    const { Attributes } = (JSON.parse(line) as DieEvent).Actor;
    const instanceId = Attributes[labels.instance];
    if (instanceId !== undefined) ended({ instanceId, exitCode: Number(Attributes["exitCode"]) });
  });
  return {
    [Symbol.asyncDispose]: async () => {
      await child.stdin.end();
      await Promise.all([child.exited, following]);
    },
  };
}

async function followLines(
  stream: ReadableStream<Uint8Array>,
  onLine: (line: string) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  const kept = { text: "" };
  for await (const chunk of stream) {
    const lines = (kept.text + decoder.decode(chunk, { stream: true })).split("\n");
    kept.text = lines.pop() ?? "";
    for (const line of lines) onLine(line);
  }
}
