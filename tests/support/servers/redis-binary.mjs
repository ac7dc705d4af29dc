// @ts-check
import { execFile, spawn } from 'node:child_process';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {object} RedisBinary
 * @property {string} path
 * @property {string} version
 * @property {string} source  how it was found, for people to read
 *
 * @typedef {object} Limits
 * @property {number} beginMs  until a download must have begun: a machine without internet has to fall through quickly
 * @property {number} silenceMs  a download that says nothing for so long has died
 * @property {number} buildMs  compiling Redis takes minutes on a small machine
 * @property {number} packageMs  one command of the system's package manager
 *
 * @typedef {object} SearchOptions
 * @property {NodeJS.ProcessEnv} [env]
 * @property {boolean} [root]  whether the system's package manager may be used
 * @property {(line: string) => void} [say]
 * @property {Partial<Limits>} [limits]
 */

/** @type {Limits} */
const LIMITS = { beginMs: 8_000, silenceMs: 30_000, buildMs: 15 * 60_000, packageMs: 5 * 60_000 };
const PROJECT = fileURLToPath(new URL('../../..', import.meta.url));
const SERVERS = ['redis-server', 'valkey-server'];

const APT = { command: 'apt-get', refresh: ['update'], install: ['install', '-y', '--no-install-recommends'] };
const DNF = { install: ['install', '-y'], packages: ['redis', 'valkey'] };
/** @type {{ command: string, refresh?: string[], install: string[], packages: string[] }[]} */
const PACKAGE_MANAGERS = [
  { ...APT, packages: SERVERS },
  { command: 'apk', install: ['add', '--no-cache'], packages: ['redis', 'valkey'] },
  { command: 'dnf', ...DNF },
  { command: 'yum', ...DNF },
  { command: 'microdnf', ...DNF },
  { command: 'pacman', install: ['-Sy', '--noconfirm'], packages: ['valkey', 'redis'] },
];

const ADVICE = `Install one with the command for your system and run this again:
  Debian, Ubuntu   sudo apt-get install -y redis-server
  Alpine           sudo apk add redis
  Fedora, RHEL     sudo dnf install -y redis      (newer ones: valkey)
  Arch             sudo pacman -S valkey
  macOS            brew install redis
  Windows          use WSL with one of the above
or set HOLDFAST_REDIS_BINARY to the path of a redis-server or valkey-server.`;

/**
 * Finds or provides a real Redis server binary and says in one line which it took. In this order:
 * HOLDFAST_REDIS_BINARY, the PATH, redis-memory-server's own download and build, the system's package manager if we are
 * root.
 *
 * @param {SearchOptions} [options]
 * @returns {Promise<RedisBinary>}
 */
export async function findRedisBinary(options = {}) {
  const { env = process.env, root = process.getuid?.() === 0, say = console.log } = options;
  const limits = { ...LIMITS, ...options.limits };
  /** @param {RedisBinary} found */
  const take = (found) => {
    say(`Redis ${found.version}: ${found.path} (${found.source})`);
    return found;
  };

  const named = env.HOLDFAST_REDIS_BINARY;
  if (named) {
    const found = await probe(resolve(named), 'named by HOLDFAST_REDIS_BINARY', env);
    // Fail: a fallback would test another server than the requested one.
    if (!found)
      throw new Error(`HOLDFAST_REDIS_BINARY is ${named}, which is no Redis server that runs here.\n${ADVICE}`);
    return take(found);
  }
  const onPath = await findOnPath(env, 'on the PATH');
  if (onPath) return take(onPath);

  const failures = [`PATH: no ${SERVERS.join(' and no ')} that runs`];
  const ways = { 'redis-memory-server': () => buildWithMemoryServer(env, limits, say) };
  if (root) Object.assign(ways, { 'system packages': () => installPackage(env, limits, say) });
  else failures.push('system packages: not tried, since this is not root');
  for (const [name, way] of Object.entries(ways)) {
    try {
      return take(await way());
    } catch (error) {
      failures.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new Error(
    `There is no Redis server on this machine and none could be provided.\n  ${failures.join('\n  ')}\n${ADVICE}`,
  );
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {string} source
 */
async function findOnPath(env, source) {
  for (const name of SERVERS) {
    for (const path of whereIs(name, env)) {
      const found = await probe(path, source, env);
      if (found) return found;
    }
  }
  return undefined;
}

/**
 * @param {string} name
 * @param {NodeJS.ProcessEnv} env
 */
function whereIs(name, env) {
  const file = process.platform === 'win32' ? `${name}.exe` : name;
  return (env.PATH ?? '')
    .split(delimiter)
    .filter((directory) => directory !== '')
    .map((directory) => join(directory, file))
    .filter((path) => {
      try {
        accessSync(path, constants.X_OK);
        return statSync(path).isFile();
      } catch {
        return false;
      }
    });
}

/**
 * A file that is there may still be for another architecture or miss a library: only one that answers counts.
 *
 * @param {string} path
 * @param {string} source
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<RedisBinary | undefined>}
 */
function probe(path, source, env) {
  return new Promise((done) => {
    execFile(path, ['--version'], { env, timeout: 5_000 }, (error, stdout) => {
      const version = /\bv=([0-9][0-9.]*)/.exec(stdout)?.[1];
      done(error || !version ? undefined : { path, version, source });
    });
  });
}

/**
 * Runs in a separate process, because only the end of its process ends a hanging download.
 *
 * @param {NodeJS.ProcessEnv} env
 * @param {Limits} limits
 * @param {(line: string) => void} say
 * @returns {Promise<RedisBinary>}
 */
async function buildWithMemoryServer(env, limits, say) {
  const script = `
    const { default: RedisBinary } = require('redis-memory-server/lib/util/RedisBinary.js');
    RedisBinary.getPath().then((path) => console.log('found ' + path), (error) => {
      console.log('failed ' + error.message.split('\\n')[0]);
      process.exit(1);
    });`;
  const child = spawn(process.execPath, ['-e', script], {
    cwd: PROJECT,
    // Its https client does not verify the server unless npm's setting says so; the steps show in its debug lines only.
    env: { npm_config_strict_ssl: 'true', ...env, DEBUG: 'RedisMS:*', DEBUG_COLORS: 'no', NODE_OPTIONS: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A separate process group, so that the compiler ends with it.
    detached: process.platform !== 'win32',
  });
  const kill = () => {
    if (child.pid === undefined || child.exitCode !== null) return;
    if (process.platform === 'win32') child.kill();
    else process.kill(-child.pid, 'SIGTERM');
  };
  /** @param {NodeJS.Signals} signal */
  const interrupted = (signal) => {
    kill();
    process.kill(process.pid, signal);
  };
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);

  let output = '';
  let stage = 'download did not begin';
  let timer = setTimeout(kill, limits.beginMs);
  /** @param {string} next @param {number} limitMs */
  const enter = (next, limitMs) => {
    stage = next;
    clearTimeout(timer);
    timer = setTimeout(kill, limitMs);
  };
  /** @param {Buffer} chunk */
  const read = (chunk) => {
    const text = chunk.toString();
    output += text;
    if (/makeInstall/.test(text)) {
      enter('build did not end', limits.buildMs);
    } else if (/Downloading Redis/.test(text)) {
      if (stage === 'download did not begin')
        say('No Redis server found: redis-memory-server builds one, once (minutes)');
      enter('download stood still', limits.silenceMs);
    }
  };
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  try {
    await new Promise((done, fail) => child.once('close', done).once('error', fail));
  } finally {
    clearTimeout(timer);
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
  }
  const path = /^found (.+)$/m.exec(output)?.[1];
  if (!path) throw new Error(/^failed (.+)$/m.exec(output)?.[1] ?? `its ${stage} in time`);
  const found = await probe(path, 'built by redis-memory-server', env);
  if (!found) throw new Error(`its build does not run: ${path}`);
  return found;
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @param {Limits} limits
 * @param {(line: string) => void} say
 * @returns {Promise<RedisBinary>}
 */
async function installPackage(env, limits, say) {
  const manager = PACKAGE_MANAGERS.find(({ command }) => whereIs(command, env).length > 0);
  if (!manager) throw new Error(`none of ${PACKAGE_MANAGERS.map(({ command }) => command).join(', ')} is here`);
  const { command, refresh, install, packages } = manager;
  say(`No Redis server found: installing one with ${command}`);
  /** @param {string[]} args */
  const run = (args) => runQuietly(command, args, { ...env, DEBIAN_FRONTEND: 'noninteractive' }, limits.packageMs);
  if (refresh) await run(refresh).catch(() => undefined); // an outdated list may still do
  /** @type {Error | undefined} */
  let failure;
  for (const name of packages) {
    try {
      await run([...install, name]);
    } catch (error) {
      failure ??= /** @type {Error} */ (error);
      continue;
    }
    // Debian starts the service it installs; only the binary is wanted.
    if (command === 'apt-get' && existsSync('/run/systemd/system')) {
      await runQuietly('systemctl', ['disable', '--now', name], env, limits.packageMs).catch(() => undefined);
    }
    const found = await findOnPath(env, `installed with ${command}`);
    if (found) return found;
  }
  throw failure ?? new Error(`${command} installed no server on the PATH`);
}

/**
 * @param {string} command
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @param {number} limitMs
 * @returns {Promise<void>}
 */
function runQuietly(command, args, env, limitMs) {
  return new Promise((done, fail) => {
    const child = execFile(command, args, { env, timeout: limitMs, maxBuffer: 2 ** 26 }, (error, _stdout, stderr) => {
      const reason = stderr.trim().split('\n').at(-1) || error?.message;
      if (error) fail(new Error(`${command} ${args.join(' ')}: ${reason}`));
      else done();
    });
    child.stdin?.end();
  });
}
