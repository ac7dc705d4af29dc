import { expect, test } from '@jest/globals';
import { LightSet } from '../../src/light-set.js';
import { Random } from '../support/random.js';

test('a light set behaves like a Set for any sequence of additions and removals', () => {
  const random = new Random('light set');
  const elements = [{}, {}, {}, {}];
  for (let round = 0; round < 200; round += 1) {
    const light = new LightSet<object>();
    const set = new Set<object>();
    for (let step = 0; step < 40; step += 1) {
      const element = random.pick(elements);
      if (random.below(2) === 0) {
        light.add(element);
        set.add(element);
      } else {
        expect(light.delete(element)).toBe(set.delete(element));
      }
      expect([...light].map((each) => elements.indexOf(each))).toEqual([...set].map((each) => elements.indexOf(each)));
      expect(light.size).toBe(set.size);
      expect(light.first).toBe([...set][0]);
      for (const each of elements) expect(light.has(each)).toBe(set.has(each));
    }
    light.clear();
    expect(light.size).toBe(0);
    expect(light.has(elements[0] as object)).toBe(false);
  }
});

test('a light set allows additions and removals during an iteration', () => {
  const [a, b, c] = [{ name: 'a' }, { name: 'b' }, { name: 'c' }];
  const light = new LightSet<{ name: string }>();
  light.add(a);
  light.add(b);
  const seen: string[] = [];
  for (const { name } of light) {
    seen.push(name);
    light.delete(b);
    light.add(c);
  }
  expect(seen).toEqual(['a', 'c']);
  light.clear();
  light.add(a);
  for (const { name } of light) {
    seen.push(name);
    light.add(b);
  }
  expect(seen).toEqual(['a', 'c', 'a']);
});
