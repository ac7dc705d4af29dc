import { expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { testRedisUrl } from '../../support/redis.js';
import { counted, functionsOf, measured, recorded, TITLES, TOUR, withTable, type Walk } from './walks.js';

const walks = counted(await measured(testRedisUrl()));
const record = recorded();

/** Walk D waits for time limits: on a busy machine, a retry or a timer may or may not fall into it. */
const TIMED = 'D';
const TIMED_FUNCTIONS = 2;

const beside = (walk: Walk, other: Walk): string[] => Object.keys(walk).filter((file) => !(file in other));

test('every walk has a title and a record', () => {
  expect(Object.keys(walks)).toEqual(Object.keys(TITLES));
  expect(Object.keys(record)).toEqual(Object.keys(TITLES));
});

test.each(Object.entries(TITLES))('walk %s (%s) enters the files of its record and no other', (letter) => {
  expect(beside(walks[letter]!, record[letter]!)).toEqual([]);
  // `npm run suite -- walks` records a walk that has become shorter.
  if (letter !== TIMED) expect(beside(record[letter]!, walks[letter]!)).toEqual([]);
});

test.each(Object.entries(TITLES))('walk %s (%s) enters no more functions than its record has', (letter) => {
  expect(functionsOf(walks[letter]!)).toBeGreaterThan(20);
  const most = functionsOf(record[letter]!) + (letter === TIMED ? TIMED_FUNCTIONS : 0);
  expect(functionsOf(walks[letter]!)).toBeLessThanOrEqual(most);
});

test('the tour of the source has the table of the record', () => {
  const tour = readFileSync(TOUR, 'utf8');
  expect(withTable(tour, record)).toBe(tour);
});
