import { ClusterError } from "../errors.ts";

const plainWord = /^[\w@%+:,./-]+$/;
const reservedWord = /^(?:case|coproc|do|done|elif|else|esac|fi|for|function|if|in|select|then|time|until|while)$/;

/**
 * Quotes words so that a POSIX shell reads back exactly these words. Everything that this program passes to a remote
 * shell goes through here. Fails as `bad-usage` for a NUL character, which no shell can carry; the message doesn't show
 * the word, which may be a secret.
 */
export function quote(words: readonly string[]): string {
  return words.map(quoteWord).join(" ");
}

function quoteWord(word: string): string {
  if (word.includes("\0"))
    throw new ClusterError("bad-usage", "A value contains a NUL character, which cannot be passed to a shell.");
  return plainWord.test(word) && !reservedWord.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
