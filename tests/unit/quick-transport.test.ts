import { expect, test } from '@jest/globals';
import { Command } from 'ioredis';
import { AnsweredCommand } from '../../src/redis/connections/quick-transport.js';

const SHA = '0123456789abcdef0123456789abcdef01234567';
const answers = { answered: () => undefined, failed: () => undefined };

test.each([
  ['a script by its address', 'evalsha', [SHA, '1', 'orders:7', 'owner:1', '30000', '0']],
  ['a script with two keys', 'evalsha', [SHA, '2', 'a', 'b']],
  ['a script with none', 'evalsha', [SHA, '0']],
  ['a script as text, other alphabets, nothing', 'eval', ['return 1', '1', 'größer:日本:🔒', '']],
  ['words of 255 and of 256 bytes', 'hget', ['y'.repeat(255), 'ü'.repeat(128)]],
  ['a long word', 'hget', ['{x}', 'z'.repeat(70_000)]],
  ['half of a pair', 'exists', ['\ud83d']],
  ['no words', 'asking', []],
])('%s: written byte by byte as ioredis writes it', (_case, name, words) => {
  const written = (command: Command): Buffer => Buffer.from(command.toWritable({}) as string);
  const ours = written(new AnsweredCommand(name, [...words], answers, undefined));
  expect(ours.equals(written(new Command(name, [...words])))).toBe(true);
});

test('the reply goes to the named receiver, with the attempt, and as text', () => {
  const told: unknown[] = [];
  const attempt = { name: 'attempt' };
  const command = new AnsweredCommand(
    'evalsha',
    [SHA, '0'],
    { answered: (...given) => told.push(given), failed: (...given) => told.push(given) },
    attempt,
  );
  const error = new Error('no');
  command.resolve(Buffer.from('größer'));
  command.resolve([Buffer.from('1'), 2, null]);
  command.resolve(null);
  command.reject(error);
  expect(told).toEqual([
    [attempt, 'größer'],
    [attempt, ['1', 2, null]],
    [attempt, null],
    [attempt, error],
  ]);
});

test('other code may call the function that ends a command on its own, as agents do', () => {
  const told: unknown[] = [];
  const attempt = { name: 'attempt' };
  const { resolve, reject } = new AnsweredCommand(
    'evalsha',
    [SHA, '0'],
    { answered: (...given) => told.push(given), failed: (...given) => told.push(given) },
    attempt,
  );
  const error = new Error('no');
  resolve(Buffer.from('1'));
  reject(error);
  expect(told).toEqual([
    [attempt, '1'],
    [attempt, error],
  ]);
});
