#!/usr/bin/env node
/* Loads the rest only when it runs, so that a missing ioredis gets a message instead of a stack trace. */
try {
  const { run } = await import('./run.js');
  process.exitCode = await run(process.argv.slice(2));
} catch (error) {
  const { code, message = '' } = error as { code?: unknown; message?: string };
  if (code !== 'ERR_MODULE_NOT_FOUND' || !message.includes("'ioredis'")) throw error;
  process.stderr.write('holdfast needs the package ioredis, which is not installed: npm install ioredis\n');
  process.exitCode = 2;
}
