import type { InspectOptions } from 'node:util';

type Inspect = (value: unknown, options: InspectOptions) => string;

const CUSTOM = Symbol.for('nodejs.util.inspect.custom');

/**
 * Sets what `console.log()`, `JSON.stringify()` and structured loggers show of the objects of a class. Without it they
 * would print the whole client behind a lock: its connections, options and scripts.
 */
export function showAs<T extends object>(type: { readonly prototype: T }, summary: (shown: T) => object): void {
  const methods = {
    toJSON(this: T): object {
      return summary(this);
    },
    [CUSTOM](this: T, depth: number, options: InspectOptions, inspect: Inspect): string {
      const name = this.constructor.name;
      return depth < 0 ? `[${name}]` : `${name} ${inspect(summary(this), options)}`;
    },
  };
  for (const key of Reflect.ownKeys(methods)) {
    Object.defineProperty(type.prototype, key, {
      value: Reflect.get(methods, key),
      configurable: true,
      writable: true,
    });
  }
}

/**
 * Gives each class the name under which users know it. In a bundle, a minifier has renamed the classes: `error.name` and
 * the output of `console.log()` would be a letter.
 */
export function keepNames(classes: Readonly<Record<string, { readonly prototype: object }>>): void {
  for (const [name, type] of Object.entries(classes)) {
    Object.defineProperty(type, 'name', { value: name, configurable: true });
  }
}
