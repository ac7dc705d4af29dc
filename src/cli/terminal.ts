import { once } from 'node:events';
import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** Where a command writes, and what it can show there. */
export class Terminal {
  /** Colours and a screen that is drawn again: only on a terminal, and not if the user has turned them off. */
  readonly isRich: boolean;

  constructor(
    readonly json: boolean,
    private readonly out: NodeJS.WriteStream = process.stdout,
    env: Readonly<Record<string, string | undefined>> = process.env,
  ) {
    this.isRich = out.isTTY && !json && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
  }

  get columns(): number {
    return this.out.isTTY ? this.out.columns : Infinity;
  }

  get rows(): number {
    return this.out.isTTY ? this.out.rows : Infinity;
  }

  style(style: Style, text: string): string {
    // `isRich` has decided. Node.js would decide again, and differently where CI is set.
    return this.isRich ? styleText(style, text, { validateStream: false }) : text;
  }

  /** Writes lines, and waits while the reader is slower than Redis. */
  async lines(...lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return;
    if (!this.out.write(`${lines.join('\n')}\n`)) await once(this.out, 'drain');
  }

  /** One line of JSON. Characters that change what a terminal shows are escaped. */
  async object(value: unknown): Promise<void> {
    await this.lines(JSON.stringify(value).replace(INVISIBLE, (char) => char.replace(/[^]/g, unicodeEscape)));
  }

  /** Draws a whole screen over the one before. */
  async screen(lines: readonly string[]): Promise<void> {
    if (!this.isRich) return this.lines(...lines, '');
    const fitting = lines.slice(0, this.rows - 1);
    await this.lines(`\x1b[H${fitting.map((line) => `${line}\x1b[K`).join('\n')}\x1b[J`);
  }
}

/** Control characters, and format characters such as those that reverse the direction of text. */
const INVISIBLE = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;

const unicodeEscape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * A text that comes from Redis, on one line, as a terminal may show it: a name must not move the cursor, change colours
 * or hide a part of itself.
 */
export function visible(text: string): string {
  return text.replace(INVISIBLE, (char) => SHORT[char] ?? `\\u{${(char.codePointAt(0) as number).toString(16)}}`);
}
