import { FAINT, FONT, INK } from '../../examples/demo/palette.js';

/** What every picture is made of. Texts are measured by their number of letters, so a picture needs no browser. */
export class Svg {
  readonly #parts: string[] = [];

  constructor(
    private readonly width: number,
    private readonly height: number,
    /** What the picture shows, for readers who cannot see it. */
    private readonly description: string,
    /** Its figures, for the same readers. */
    private readonly details?: string,
  ) {}

  rect(x: number, y: number, width: number, height: number, attributes: string): void {
    this.#parts.push(
      `<rect x="${fixed(x)}" y="${fixed(y)}" width="${fixed(width)}" height="${fixed(height)}" ${attributes}/>`,
    );
  }

  path(d: string, attributes: string): void {
    this.#parts.push(`<path d="${d}" ${attributes}/>`);
  }

  line(from: readonly [number, number], to: readonly [number, number], attributes: string): void {
    this.path(`M${from.map(fixed).join(' ')}L${to.map(fixed).join(' ')}`, attributes);
  }

  text(x: number, y: number, text: string, attributes = ''): void {
    this.#parts.push(`<text x="${fixed(x)}" y="${fixed(y)}"${attributes && ` ${attributes}`}>${escaped(text)}</text>`);
  }

  title(text: string): void {
    this.text(24, 34, text, 'font-size="17" font-weight="600"');
  }

  faint(x: number, y: number, text: string, attributes = ''): void {
    this.text(x, y, text, `fill="${FAINT}" font-size="12" ${attributes}`.trimEnd());
  }

  toString(): string {
    const { width, height } = this;
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" role="img" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`,
      ` font-family="${FONT}" font-size="13" fill="${INK}">`,
      `<title>${escaped(this.description)}</title>`,
      ...(this.details === undefined ? [] : [`<desc>${escaped(this.details)}</desc>`]),
      `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
      ...this.#parts,
      '</svg>\n',
    ].join('\n');
  }
}

const fixed = (value: number): string => String(Math.round(value * 10) / 10);

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
