import { afterEach, expect, test } from '@jest/globals';
import { PROJECT_ROOT } from '../../support/project/project-files.js';
import { admin, testRedisUrl } from '../../support/redis.js';
import { faultsUnder } from './watch.mjs';

afterEach(() => admin().del('permits', '{permits}:requests'));

test('locks work under OpenTelemetry, and their commands are spans of the calling request', async () => {
  expect(await faultsUnder('opentelemetry', PROJECT_ROOT, testRedisUrl())).toEqual([]);
});

test('OpenTelemetry that is enabled later sees existing clients until it is disabled', async () => {
  expect(await faultsUnder('opentelemetry', PROJECT_ROOT, testRedisUrl(), 'late')).toEqual([]);
});
