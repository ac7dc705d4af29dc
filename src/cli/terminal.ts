import { escapeOf } from '../integrations/shared/inspection-words.js';
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
    const shown = (char: string): string => (escapeOf(char) === undefined ? char : char.replace(/[^]/g, unicodeEscape));
    await this.lines(Array.from(JSON.stringify(value), shown).join(''));
  }

  /** Draws a whole screen over the one before. */
  async screen(lines: readonly string[]): Promise<void> {
    if (!this.isRich) return this.lines(...lines, '');
    const fitting = lines.slice(0, this.rows - 1);
    await this.lines(`\x1b[H${fitting.map((line) => `${line}\x1b[K`).join('\n')}\x1b[J`);
  }
}

const unicodeEscape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
