/** How many API round trips the commands that only ask take: the local cloud answers slowly, so that little else counts. */
import { startBenchCloud } from "./local-cloud.ts";
import type { Row } from "./measure.ts";
import { interleaved, inMilliseconds, rowOf } from "./measure.ts";

const apiDelayMs = 300;
const rounds = 7;

/** `list` is one question; `doctor` asks all its questions side by side, but for those that need another's answer. */
const questions = [
  { words: ["list"], roundTrips: 1 },
  { words: ["doctor"], roundTrips: 2 },
] as const;

export async function measureQuestions(executable: string): Promise<readonly Row[]> {
  await using cloud = await startBenchCloud("in-process", ["--api-delay-ms", String(apiDelayMs)]);
  const environment = { ...cloud.environment, CI: "1" };
  const commands = questions.map(({ words }) => [executable, ...words]);
  const seconds = await interleaved(commands, rounds, environment);
  return questions.map(({ words, roundTrips }, index) =>
    rowOf({
      what: `${words.join(" ")}: ${roundTrips} round trip${roundTrips === 1 ? "" : "s"} deep`,
      values: seconds[index] ?? [],
      unit: inMilliseconds,
      references: [(roundTrips * apiDelayMs) / 1000],
      by: "scripted API delay",
    }),
  );
}
