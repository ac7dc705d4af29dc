/** The first part of a name is its kind: `fair:7` is a fair lock. A key has one kind only. */
export const KINDS = [
  'lock',
  'fair',
  'readwrite',
  'fenced',
  'semaphore',
  'group',
  'permits',
  'multi',
  'spin',
  'nonreentrant',
  'nonreentrantfair',
  'red',
  'latch',
] as const;
export type Kind = (typeof KINDS)[number];

export const kindOf = (name: string): Kind | undefined =>
  KINDS.find((kind) => kind === name.replace('{', '').split(':', 1)[0]);

/** The history name of a name in database 1: the same keys and channels, and other locks. */
const ELSEWHERE = '@1';
export const isElsewhere = (name: string): boolean => name.includes(ELSEWHERE);
export const elsewhere = (name: string): string => name.replace(/(\/.*)?$/, `${ELSEWHERE}$1`);
/** As Redis knows it. */
export const redisName = (name: string): string => name.replace(ELSEWHERE, '');

/** Kinds with one owner at a time, in one field of a hash. The bench follows them at the servers. */
const EXCLUSIVE: ReadonlySet<Kind | undefined> = new Set<Kind>([
  'lock',
  'fair',
  'fenced',
  'spin',
  'nonreentrant',
  'nonreentrantfair',
]);
export const isExclusive = (name: string): boolean => EXCLUSIVE.has(kindOf(name));
/** Several may have it; of these the bench sees at the servers only which calls took something. */
const SHARED: ReadonlySet<Kind | undefined> = new Set(['readwrite', 'group']);
export const isShared = (name: string): boolean => SHARED.has(kindOf(name));
/** A RedLock: at each of several servers a part of it. */
export const isRed = (name: string): boolean => kindOf(name) === 'red';
/** Kinds whose losses by a failover are not visible at the servers. */
const isUnfollowed = (name: string): boolean => isShared(name) || isCounted(name) || kindOf(name) === 'latch';
/** Their names in histories. */
export const unfollowedOf = (names: readonly string[]): string[] => names.filter(isUnfollowed).flatMap(namesAt);
/** Kinds with their own keys. The others consist of locks with other names. */
export const hasKeys = (name: string): boolean => kindOf(name) !== 'multi';
/** Kinds whose waiters are in a queue at the server. */
export const isFair = (name: string): boolean => kindOf(name) === 'fair' || kindOf(name) === 'nonreentrantfair';
/** Kinds for which a flow inside another hold may wait for a short time. */
export const isLock = (name: string): boolean => isExclusive(name) || isShared(name) || isRed(name);

const COUNTED: ReadonlySet<Kind | undefined> = new Set(['semaphore', 'permits']);
/** Kinds without an owner: the number of permits. */
export const isCounted = (name: string): boolean => COUNTED.has(kindOf(name));
export const PERMITS = 4;

/** The values of a group. Histories know each by `<group>/<value>`. */
export const VALUES = ['a', 'b', 'c', 'd'] as const;
export const valueName = (group: string, value: string): string => `${group}/${value}`;
/** The key that a name of a history is at. */
export const keyOf = (name: string): string => name.split('/', 1)[0] as string;
/** The history names of the objects at a key. */
export const namesAt = (key: string): string[] =>
  kindOf(key) === 'group' ? VALUES.map((value) => valueName(key, value)) : [key];

/** The first third meets half of the calls. */
const ORDER: readonly Kind[] = [
  ...(['lock', 'fair', 'readwrite', 'fenced', 'group', 'semaphore'] as const),
  ...(['multi', 'permits', 'spin', 'nonreentrant', 'latch', 'readwrite'] as const),
  ...(['red', 'nonreentrantfair', 'fair'] as const),
];

/** As many names as there are, of the kinds given; the last one is a plain lock if there is any. */
export function drawNames(count: number, kinds: readonly Kind[]): string[] {
  const order = ORDER.filter((kind) => kinds.includes(kind));
  const last = kinds.includes('lock') ? 'lock' : order.at(-1);
  return Array.from(
    { length: count },
    (_, index) => `${index === count - 1 ? last : order[index % order.length]}:${index}`,
  );
}

/** Redisson puts braces around a name without any: `{x}` has the channel of `x`, and for these kinds other keys. */
const BRACED: ReadonlySet<Kind | undefined> = new Set(['lock', 'fenced', 'spin', 'nonreentrant', 'group', 'semaphore']);
const braced = (name: string): string => `{${name}}`;
export const isInSlotOf = (name: string, other: string): boolean =>
  name.replace(/[{}]/g, '') === other.replace(/[{}]/g, '');

/** Names that meet others on their channels, and nowhere else: for the first name of each kind. */
export function twinsOf(names: readonly string[], inDatabases: boolean): string[] {
  const firsts = names.filter((name, at) => names.findIndex((other) => kindOf(other) === kindOf(name)) === at);
  const withOthers = firsts.filter((name) => isLock(name) || isCounted(name)).filter((name) => !isRed(name));
  return [
    ...withOthers.filter((name) => BRACED.has(kindOf(name))).map(braced),
    ...(inDatabases ? withOthers.map(elsewhere) : []),
  ];
}

const BUSY = ['lock:busy', 'nonreentrant:busy'] as const;
/** Besides the names that are drawn: all processes have one short section after the other here. */
export const busyNames = (kinds: readonly Kind[]): string[] =>
  BUSY.filter((name) => kinds.includes(kindOf(name) as Kind));

const CALM = [
  'lock:calm',
  'fair:calm',
  'fenced:calm',
  'readwrite:calm',
  'nonreentrantfair:calm',
  'lock:calmer',
] as const;
/** Besides the names that are drawn: few want them, keep them for long and leave them alone for longer. */
export const calmNames = (kinds: readonly Kind[]): string[] =>
  CALM.filter((name) => kinds.includes(kindOf(name) as Kind));
