/** Bytes of a text in UTF-8; a lone surrogate counts 3, as the replacement character that encoders write for it. */
export function utf8Length(text: string): number {
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) bytes += 1;
    else if (unit < 0x800) bytes += 2;
    else if (isPairAt(text, i, unit)) {
      bytes += 4;
      i += 1;
    } else bytes += 3;
  }
  return bytes;
}

function isPairAt(text: string, index: number, unit: number): boolean {
  if (unit < 0xd800 || unit > 0xdbff) return false;
  const next = text.charCodeAt(index + 1);
  return next >= 0xdc00 && next <= 0xdfff;
}

/** Whether a text takes more than `bytesMax` in UTF-8; looks at no more of it than the answer needs. */
export function isLongerThan(text: string, bytesMax: number): boolean {
  if (text.length * 3 <= bytesMax) return false;
  return text.length > bytesMax || utf8Length(text) > bytesMax;
}
