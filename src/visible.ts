/*
 * Text from outside, such as a lock name, as a part of a message or of a row: it must not begin a line, move the cursor of
 * a terminal, change colours or hide a part of itself. The inspector's page runs this file in a browser.
 */

/**
 * Characters that show nothing, or change how others are shown: control and format characters, line and paragraph
 * separators, spaces other than the ordinary one, fillers, variation selectors, blank symbols and halves of characters.
 */
const INVISIBLE =
  /[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\p{Noncharacter_Code_Point}\u2028\u2029\u2800\u{1d159}]|(?! )\p{Zs}/gu;
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

const escaped = (char: string): string => SHORT[char] ?? `\\u{${(char.codePointAt(0) as number).toString(16)}}`;

/** A text on one line, with an escape such as `\u{202e}` in place of each character that would not be seen. */
export const visible = (text: string): string => text.replace(INVISIBLE, escaped);

/** The escape of a character that would not be seen; `undefined` for the others. */
export function escapeOf(char: string): string | undefined {
  const shown = visible(char);
  return shown === char ? undefined : shown;
}

/** The largest number of characters of a name in a message. */
const LONGEST = 200;

/** The beginning of a text that may be long. */
export const shortened = (text: string, longest = LONGEST): string =>
  text.length <= longest ? text : `${text.slice(0, longest).replace(/\p{Cs}$/u, '')}… (${text.length} characters)`;

/** A name in quotation marks. The name cannot end them. */
export const quoted = (name: string): string => `"${visible(shortened(name).replace(/["\\]/g, '\\$&'))}"`;
