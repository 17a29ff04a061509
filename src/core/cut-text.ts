/** A text of at most `max` characters, and how many there were where it was cut: what others wrote has no end of its own. */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text;
  const ending = `… (${text.length} characters)`;
  // No half of a character that takes two units.
  return `${text.slice(0, Math.max(0, max - ending.length)).toWellFormed()}${ending}`;
}
