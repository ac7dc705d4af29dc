/* Elements from text alone: no text that comes from a server is ever read as HTML. */
import type { Named } from '../../messages.js';
import { escapeOf } from '../../../shared/inspection-words.js';
import { count } from './format.js';

type Child = Node | string | undefined | false;

/** Creates an element with attributes and children. Strings become text. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const created = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, value);
  created.append(...children.filter((child) => child !== undefined && child !== false));
  return created;
}

/** Creates an element of a drawing. */
export function shape(tag: string, attributes: Readonly<Record<string, string | number>>, text?: string): SVGElement {
  const created = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) created.setAttribute(name, String(value));
  if (text !== undefined) created.textContent = text;
  return created;
}

/** The element of the page with an id. It is of the given class. */
export function byId<Type extends HTMLElement = HTMLElement>(id: string, type?: new () => Type): Type {
  const found = document.getElementById(id);
  if (!(found instanceof (type ?? HTMLElement))) throw new Error(`the page has no element ${id}`);
  return found as Type;
}

export function within(parent: ParentNode, selector: string): HTMLElement {
  const found = parent.querySelector<HTMLElement>(selector);
  if (found === null) throw new Error(`the page has no element ${selector}`);
  return found;
}

/** Sets the text of an element. An unchanged text is left alone: a screen reader would read it again. */
export function setText(target: Element, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

/** A name as an element of its own direction, in which escapes look different from the same characters in the name. */
export function named(text: string, name = 'name'): HTMLElement {
  const created = element('bdi', { class: name });
  let plain = '';
  for (const char of text) {
    const escape = escapeOf(char);
    if (escape === undefined) {
      plain += char;
      continue;
    }
    created.append(plain, element('span', { class: 'escape' }, escape));
    plain = '';
  }
  created.append(plain);
  return created;
}

/** A name of which the page may have only the beginning. */
export function nameNode({ name, length }: Named): HTMLElement {
  const created = named(name);
  if (name.length < length) created.append(element('span', { class: 'escape' }, `… (${count(length)} characters)`));
  return created;
}
