import { ClusterError } from "../errors.ts";

const plainWord = /^[\w@%+:,./-]+$/;
const reservedWord = /^(?:case|coproc|do|done|elif|else|esac|fi|for|function|if|in|select|then|time|until|while)$/;

/**
 * Writes words so that a POSIX shell reads exactly these words again. Everything that this program hands to a remote shell goes through here.
 * A NUL character, which no shell can carry, is refused as `bad-usage`; the message doesn't show the word, which may be a secret.
 */
export function quote(words: readonly string[]): string {
  return words.map(quoteWord).join(" ");
}

function quoteWord(word: string): string {
  if (word.includes("\0"))
    throw new ClusterError("bad-usage", "A value holds a NUL character, which no shell can carry.");
  return plainWord.test(word) && !reservedWord.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
