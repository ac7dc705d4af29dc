import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { InvalidArgumentError } from '../../src/errors.js';
import { lockName, type LockNameValue } from '../../src/lock-name.js';

describe('lockName', () => {
  test('builds the name, and remembers the template as the group', () => {
    const name = lockName`order:${42}:${'eu'}`;
    expect(name).toMatchObject({ name: 'order:42:eu', group: 'order:{}:{}' });
    expect(String(name)).toBe('order:42:eu');
    expect(lockName`report`).toMatchObject({ name: 'report', group: 'report' });
    expect(lockName`${10n ** 20n}/${false}/${-0}/${1.5}`.name).toBe('100000000000000000000/false/0/1.5');
  });

  test.each<[shown: string, value: unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['NaN', NaN],
    ['Infinity', -Infinity],
    ['""', ''],
    ['an object', {}],
    ['an object (Date)', new Date(0)],
    ['an empty array', []],
    ['Symbol(id)', Symbol('id')],
    ['a function', () => 'id'],
    ['an object', lockName`inner`],
  ])('refuses %s, and names the value', (shown, value) => {
    const make = (): unknown => lockName`order:${1}:${value as string}`;
    expect(make).toThrow(InvalidArgumentError);
    expect(make).toThrow('value 2 of lockName`order:{}:{}` must be a text that is not empty, a finite number');
    expect(make).toThrow(shown);
  });

  test('refuses a name that is empty, and text with a lone surrogate', () => {
    expect(() => lockName``).toThrow('not empty');
    expect(() => lockName`a:${'\ud800'}`).toThrow('value 1 of lockName`a:{}` must be well-formed');
    expect(() => lockName`\ud800${1}`).toThrow('template must be well-formed');
    expect(() => lockName('order' as never)).toThrow('a template literal');
  });

  test('refuses values whose end in the name would be unknown', () => {
    expect(() => lockName`${'a'}${'bc'}`).toThrow('value 1 of lockName`{}{}` must be followed by text');
    expect(() => lockName`${1}:${2}%${3}`).toThrow('value 2 of lockName`{}:{}%{}` must be followed by text');
  });

  test('escapes braces and percent signs of values, and keeps those of the template', () => {
    expect(lockName`{order:${'{42}'}}:${'100%'}`.name).toBe('{order:%7B42%7D}:100%25');
    expect(lockName`${'a:b'}:${'c:d'}`.name).toBe('a%3Ab:c:d');
    expect(lockName`${'1€2'}€${'3€4'}`.name).toBe('1%E2%82%AC2€3€4');
    expect(lockName`${'ä@ö.example'}`.name).toBe('ä@ö.example');
  });
});

/** Characters with a meaning in names and escapes, and digits of escapes. */
const text = fc.string({ unit: fc.constantFrom('{', '}', '%', ':', '7', 'B', '2', '5', 'D', '€', 'x'), minLength: 1 });
const value = fc.oneof(text, fc.integer(), fc.boolean(), fc.bigInt());

test('different values give different names, whatever text is between them', () => {
  const strings = (parts: readonly string[]): TemplateStringsArray => Object.assign([...parts], { raw: parts });
  const between = text.filter((part) => !part.startsWith('%'));
  const shape = fc.record({
    before: fc.string(),
    between,
    after: fc.string(),
    a: fc.tuple(value, value),
    b: fc.tuple(value, value),
  });
  fc.assert(
    fc.property(shape, ({ before, between: middle, after, a, b }) => {
      const named = (values: readonly LockNameValue[]): string =>
        lockName(strings([before, middle, after]), ...values).name;
      expect(named(a) === named(b)).toBe(a.map(String).join('\0') === b.map(String).join('\0'));
    }),
    { numRuns: 5_000 },
  );
});

test('a value has no brace in the name', () => {
  fc.assert(fc.property(text, (id) => !/[{}]/.test(lockName`a:${id}:b`.name)));
});
