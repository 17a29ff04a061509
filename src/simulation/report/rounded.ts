/** To six digits: a report is read by people, too, and no figure of it means more. */
export function rounded(value: number): number {
  return Number(value.toPrecision(6));
}
