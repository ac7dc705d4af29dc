import { parseArgs } from 'node:util';

/** The arguments are wrong. The message says what to do. */
export class UsageError extends Error {}

const OPTIONS = {
  url: { type: 'string' },
  cluster: { type: 'string' },
  sentinel: { type: 'string' },
  db: { type: 'string' },
  prefix: { type: 'string' },
  tls: { type: 'boolean' },
  timeout: { type: 'string' },
  json: { type: 'boolean' },
  limit: { type: 'string' },
  interval: { type: 'string' },
  count: { type: 'string' },
  owner: { type: 'string' },
  yes: { type: 'boolean' },
  port: { type: 'string' },
  open: { type: 'boolean' },
  actions: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const;

type Option = keyof typeof OPTIONS;

/** The options that every command that talks to Redis has. */
const CONNECTION: readonly Option[] = ['url', 'cluster', 'sentinel', 'db', 'prefix', 'tls', 'timeout', 'json'];

/** Each command, what it takes besides options, and its own options. */
const COMMANDS = {
  ls: { operand: 'optional', options: ['limit'] },
  inspect: { operand: 'required', options: [] },
  watch: { operand: 'required', options: ['interval'] },
  top: { operand: 'optional', options: ['interval', 'count', 'limit'] },
  unlock: { operand: 'required', options: ['owner', 'yes'] },
  doctor: { operand: 'none', options: [] },
  ui: { operand: 'none', options: ['port', 'open', 'actions'] },
  explain: { operand: 'required', options: [] },
} as const satisfies Record<string, { operand: 'none' | 'optional' | 'required'; options: readonly Option[] }>;

export type CommandName = keyof typeof COMMANDS;

export interface Arguments {
  readonly command: CommandName | 'help' | 'version';
  /** The name or pattern of the command. */
  readonly operand: string | undefined;
  readonly text: Readonly<Partial<Record<Option, string>>>;
  readonly flags: ReadonlySet<Option>;
}

/** @throws {UsageError} The arguments are wrong. */
export function readArguments(given: readonly string[]): Arguments {
  const { values, positionals } = parsed(given);
  const entries = Object.entries(values) as [Option, string | boolean][];
  const text = Object.fromEntries(entries.filter(([, value]) => typeof value === 'string'));
  const flags = new Set(entries.filter(([, value]) => value === true).map(([option]) => option));
  if (flags.has('version')) return { command: 'version', operand: undefined, text, flags };
  const [command, operand, ...more] = positionals;
  if (flags.has('help') || command === undefined || command === 'help') {
    return { command: 'help', operand: undefined, text, flags };
  }
  if (!isCommand(command)) {
    throw new UsageError(`unknown command "${command}"; expected one of ${Object.keys(COMMANDS).join(', ')}`);
  }
  const { operand: takes, options } = COMMANDS[command];
  const known: readonly Option[] = command === 'explain' ? options : [...CONNECTION, ...options];
  const unknown = entries.find(([option]) => !known.includes(option));
  if (unknown !== undefined) throw new UsageError(`${command} has no option --${unknown[0]}`);
  if (takes === 'required' && operand === undefined) {
    const what = command === 'explain' ? 'code' : 'name';
    throw new UsageError(`${command} needs a ${what}: holdfast ${command} <${what}>`);
  }
  const extra = takes === 'none' ? operand : more[0];
  if (extra !== undefined) throw new UsageError(`unexpected argument "${extra}"; put a name with spaces in quotes`);
  return { command, operand, text, flags };
}

const isCommand = (name: string): name is CommandName => Object.hasOwn(COMMANDS, name);

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** A number among the options, in the unit of the option. */
export function numberOption({ text }: Arguments, option: Option, byDefault: number, min: number): number {
  const given = text[option];
  if (given === undefined) return byDefault;
  const value = given.trim() === '' ? NaN : Number(given);
  if (!Number.isFinite(value) || value < min) throw new UsageError(`--${option} must be a number of at least ${min}`);
  return value;
}
