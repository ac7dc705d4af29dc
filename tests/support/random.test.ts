import { expect, test } from '@jest/globals';
import { Random } from './random.js';

const draw = (random: Random) => Array.from({ length: 1_000 }, () => random.below(10));

test('the same seed and label draw the same numbers, and another seed or label draws others', () => {
  const drawn = draw(new Random('a', '1'));
  expect(draw(new Random('a', '1'))).toEqual(drawn);
  expect(draw(new Random('a', '2'))).not.toEqual(drawn);
  expect(draw(new Random('b', '1'))).not.toEqual(drawn);
});

test('every value in the range is drawn and none outside it', () => {
  const random = new Random('range', '1');
  expect(new Set(draw(random))).toEqual(new Set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
  expect(new Set(Array.from({ length: 200 }, () => random.pick(['x', 'y'])))).toEqual(new Set(['x', 'y']));
});
