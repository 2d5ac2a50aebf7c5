const pattern = /^(\d{4})\.(\d{1,2})\.(\d{1,2})\.(\d+)$/;

/** The tag of the next release on that day (in UTC): `<year>.<month>.<day>.<sequence>`, the first of a day with sequence 0. */
export function nextTag(tags: readonly string[], now: Date): string {
  const [year, month, day] = now.toISOString().slice(0, 10).split("-") as [string, string, string];
  const sequences = tags.flatMap((tag) => {
    const [, ...numbers] = (pattern.exec(tag) ?? []).map(Number) as [number, ...number[]];
    const isOfToday =
      numbers[0] === Number(year) && numbers[1] === Number(month) && numbers[2] === Number(day);
    return isOfToday ? numbers.slice(3) : [];
  });
  return `${year}.${month}.${day}.${Math.max(-1, ...sequences) + 1}`;
}
