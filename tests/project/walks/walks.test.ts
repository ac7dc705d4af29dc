import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { testRedisUrl } from '../../support/redis.js';
import { counted, functionsOf, measured, recorded, TITLES, TOUR, withTable, type Walk } from './walks.js';

const walks = counted(await measured(testRedisUrl()));
const record = recorded();

/** Walk D waits for time limits: on a busy machine, some of its retries may not take place. */
const MAY_BE_SHORTER = ['D'];

const beside = (walk: Walk, other: Walk): string[] => Object.keys(walk).filter((file) => !(file in other));

test('every walk has a title and a record', () => {
  expect(Object.keys(walks)).toEqual(Object.keys(TITLES));
  expect(Object.keys(record)).toEqual(Object.keys(TITLES));
});

test.each(Object.entries(TITLES))('walk %s (%s) enters the files of its record and no other', (letter) => {
  expect(beside(walks[letter]!, record[letter]!)).toEqual([]);
  // `npm run suite -- walks` records a walk that has become shorter.
  if (!MAY_BE_SHORTER.includes(letter)) expect(beside(record[letter]!, walks[letter]!)).toEqual([]);
});

test.each(Object.entries(TITLES))('walk %s (%s) enters no more functions than its record has', (letter) => {
  expect(functionsOf(walks[letter]!)).toBeGreaterThan(20);
  expect(functionsOf(walks[letter]!)).toBeLessThanOrEqual(functionsOf(record[letter]!));
});

test('the tour of the source has the table of the record', () => {
  const tour = readFileSync(TOUR, 'utf8');
  expect(withTable(tour, record)).toBe(tour);
});
