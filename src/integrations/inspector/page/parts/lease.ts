import { element, setText } from './dom.js';
import { duration } from '../../../shared/inspection-words.js';
import { restOf } from './model.js';

/** The last fifth of a lease is shown in another colour. */
const SHORT_PART = 0.2;

/** A bar and a text that count a lease down. */
export class LeaseBar {
  readonly node: HTMLElement;
  readonly #fill = element('span');
  readonly #text = element('span', { class: 'rest' });
  #remaining = -2;
  #readAt = 0;
  #lease = 0;
  #words = '';

  constructor() {
    this.node = element(
      'span',
      { class: 'lease' },
      element('span', { class: 'bar', 'aria-hidden': 'true' }, this.#fill),
      this.#text,
    );
  }

  /** `words` follow the time, such as `renewed`. */
  show(remaining: number, readAt: number, lease: number, words = ''): void {
    this.#remaining = remaining;
    this.#readAt = readAt;
    this.#lease = Math.max(lease, remaining, 1);
    this.#words = words;
    this.tick();
  }

  tick(): void {
    const rest = restOf(this.#remaining, this.#readAt);
    const part = rest === -1 ? 1 : Math.max(0, rest) / this.#lease;
    this.node.dataset['state'] = rest === -1 ? 'endless' : rest === -2 ? 'none' : part < SHORT_PART ? 'short' : 'long';
    // The Content-Security-Policy allows styles that a script sets in this way.
    this.#fill.style.transform = `scaleX(${part.toFixed(4)})`;
    setText(this.#text, (rest === -1 ? 'no end' : rest === -2 ? '' : duration(rest)) + this.#words);
  }
}
