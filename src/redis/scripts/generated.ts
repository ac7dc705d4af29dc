// Generated from the headers in lua by npm run suite -- bindings. Do not edit.
import type { Script } from './script.js';
import fairLockAcquireSource from '../../../lua/fair-lock/acquire.lua';
import fairLockHandOffSource from '../../../lua/fair-lock/hand-off.lua';
import fairLockRefreshSource from '../../../lua/fair-lock/refresh.lua';
import fairLockReleaseSource from '../../../lua/fair-lock/release.lua';
import fencedLockAcquireNestedSource from '../../../lua/fenced-lock/acquire-nested.lua';
import fencedLockAcquireSource from '../../../lua/fenced-lock/acquire.lua';
import fencedLockHandOffSource from '../../../lua/fenced-lock/hand-off.lua';
import groupLockAcquireNestedSource from '../../../lua/group-lock/acquire-nested.lua';
import groupLockAcquireSource from '../../../lua/group-lock/acquire.lua';
import groupLockReleasePartialSource from '../../../lua/group-lock/release-partial.lua';
import groupLockReleaseSource from '../../../lua/group-lock/release.lua';
import groupLockRenewSource from '../../../lua/group-lock/renew.lua';
import groupLockStateSource from '../../../lua/group-lock/state.lua';
import latchCountDownSource from '../../../lua/latch/count-down.lua';
import latchDeleteSource from '../../../lua/latch/delete.lua';
import latchTrySetSource from '../../../lua/latch/try-set.lua';
import lockAcquireNestedSource from '../../../lua/lock/acquire-nested.lua';
import lockAcquireSource from '../../../lua/lock/acquire.lua';
import lockHandOffSource from '../../../lua/lock/hand-off.lua';
import lockLeaveSource from '../../../lua/lock/leave.lua';
import lockReleasePartialSource from '../../../lua/lock/release-partial.lua';
import lockReleaseSource from '../../../lua/lock/release.lua';
import lockRenewSource from '../../../lua/lock/renew.lua';
import lockWakeSource from '../../../lua/lock/wake.lua';
import objectForceUnlockSource from '../../../lua/object/force-unlock.lua';
import objectInspectAllSource from '../../../lua/object/inspect-all.lua';
import objectInspectSource from '../../../lua/object/inspect.lua';
import permitExpirableSemaphoreAcquireSource from '../../../lua/permit-expirable-semaphore/acquire.lua';
import permitExpirableSemaphoreAddSource from '../../../lua/permit-expirable-semaphore/add.lua';
import permitExpirableSemaphoreCountSource from '../../../lua/permit-expirable-semaphore/count.lua';
import permitExpirableSemaphoreDeleteSource from '../../../lua/permit-expirable-semaphore/delete.lua';
import permitExpirableSemaphoreExpireSource from '../../../lua/permit-expirable-semaphore/expire.lua';
import permitExpirableSemaphoreHandOffSource from '../../../lua/permit-expirable-semaphore/hand-off.lua';
import permitExpirableSemaphoreLeaseSource from '../../../lua/permit-expirable-semaphore/lease.lua';
import permitExpirableSemaphoreReleaseSource from '../../../lua/permit-expirable-semaphore/release.lua';
import permitExpirableSemaphoreSetSource from '../../../lua/permit-expirable-semaphore/set.lua';
import permitExpirableSemaphoreTrySetSource from '../../../lua/permit-expirable-semaphore/try-set.lua';
import permitExpirableSemaphoreUpdateLeaseSource from '../../../lua/permit-expirable-semaphore/update-lease.lua';
import readWriteLockAcquireReadSource from '../../../lua/read-write-lock/acquire-read.lua';
import readWriteLockAcquireWriteSource from '../../../lua/read-write-lock/acquire-write.lua';
import readWriteLockHandOffSource from '../../../lua/read-write-lock/hand-off.lua';
import readWriteLockNestReadSource from '../../../lua/read-write-lock/nest-read.lua';
import readWriteLockNestWriteSource from '../../../lua/read-write-lock/nest-write.lua';
import readWriteLockReleasePartialSource from '../../../lua/read-write-lock/release-partial.lua';
import readWriteLockReleaseReadersSource from '../../../lua/read-write-lock/release-readers.lua';
import readWriteLockReleaseSource from '../../../lua/read-write-lock/release.lua';
import readWriteLockRenewKeySource from '../../../lua/read-write-lock/renew-key.lua';
import readWriteLockRenewSource from '../../../lua/read-write-lock/renew.lua';
import requestCancelSource from '../../../lua/request/cancel.lua';
import semaphoreAcquireSource from '../../../lua/semaphore/acquire.lua';
import semaphoreAddSource from '../../../lua/semaphore/add.lua';
import semaphoreCancelSource from '../../../lua/semaphore/cancel.lua';
import semaphoreDeleteSource from '../../../lua/semaphore/delete.lua';
import semaphoreDrainSource from '../../../lua/semaphore/drain.lua';
import semaphoreExpireSource from '../../../lua/semaphore/expire.lua';
import semaphoreReleaseSource from '../../../lua/semaphore/release.lua';
import semaphoreTrySetSource from '../../../lua/semaphore/try-set.lua';
import spinLockReleaseSource from '../../../lua/spin-lock/release.lua';

export const fairLockAcquire: Script<
  [lock: string, queue: string, timeouts: string, alive: string],
  [owner: string, leaseMs: number, waitMs: number, waiterTimeoutMs: number, publish: string, channel: string]
> = {
  name: 'fair-lock/acquire',
  source: fairLockAcquireSource,
  sha: '719bf2e3e8ba752b9f5a36ad8d493b7fec596bbc',
  notAfter: 'last',
  writtenAt: [[21, 90]],
};

export const fairLockHandOff: Script<
  [lock: string, queue: string, timeouts: string, alive: string],
  [from: string, to: string, leaseMs: number, waitMs: number, publish: string, channel: string]
> = {
  name: 'fair-lock/hand-off',
  source: fairLockHandOffSource,
  sha: 'c3cbce344274fadbd371367a6e391c74beddc118',
  notAfter: 'last',
  writtenAt: [[27, 70]],
};

export const fairLockRefresh: Script<
  [lock: string, queue: string, timeouts: string, alive: string],
  [waitMs: number, waiterTimeoutMs: number, publish: string, channel: string, ...owners: string[]]
> = {
  name: 'fair-lock/refresh',
  source: fairLockRefreshSource,
  sha: '6ea46425806edb113122d6f257410a145bbf7dc5',
  notAfter: 'first',
  writtenAt: [[11, 73]],
};

export const fairLockRelease: Script<
  [lock: string, queue: string, timeouts: string, alive: string],
  [publish: string, channel: string, waitMs: number, ...owners: string[]]
> = {
  name: 'fair-lock/release',
  source: fairLockReleaseSource,
  sha: 'a943d25e86d5d1291ade0e8bd4771027d3e95c11',
  notAfter: undefined,
  writtenAt: [[22, 48]],
};

export const fencedLockAcquireNested: Script<
  [lock: string, token: string],
  [owner: string, count: number, leaseMs: number, tokens: string, known: string]
> = {
  name: 'fenced-lock/acquire-nested',
  source: fencedLockAcquireNestedSource,
  sha: '34e4adaacaf26d574cf9958f4e3e03a4d46f66cd',
  notAfter: 'last',
  writtenAt: [[13, 22]],
};

export const fencedLockAcquire: Script<
  [lock: string, token: string],
  [owner: string, leaseMs: number, tokens: string, waiters: string, station: string, since: number, registered: number]
> = {
  name: 'fenced-lock/acquire',
  source: fencedLockAcquireSource,
  sha: '9c7aa75c2eb457f8e1e21da610800bb048adda1a',
  notAfter: 'last',
  writtenAt: [
    [26, 31],
    [36, 46],
  ],
};

export const fencedLockHandOff: Script<
  [lock: string, token: string],
  [
    from: string,
    to: string,
    leaseMs: number,
    publish: string,
    channel: string,
    ours: number,
    waiters: string,
    own: string,
    most: number,
    station: string,
    since: number,
    tokens: string,
  ]
> = {
  name: 'fenced-lock/hand-off',
  source: fencedLockHandOffSource,
  sha: '2f0f06f6c8858c8c48246111e8964f4550801aae',
  notAfter: 'last',
  writtenAt: [
    [28, 65],
    [67, 78],
  ],
};

export const groupLockAcquireNested: Script<
  [group: string],
  [owner: string, leaseMs: number, ...values: (string | number)[]]
> = {
  name: 'group-lock/acquire-nested',
  source: groupLockAcquireNestedSource,
  sha: '4523c2f605e15d4caa3ae35b9a93cca9b77b671f',
  notAfter: 'first',
  writtenAt: [[15, 22]],
};

export const groupLockAcquire: Script<[group: string], [owner: string, leaseMs: number, ...values: string[]]> = {
  name: 'group-lock/acquire',
  source: groupLockAcquireSource,
  sha: '45fff04fab97d967afff50101f16e33d3ad46958',
  notAfter: 'first',
  writtenAt: [[39, 58]],
};

export const groupLockReleasePartial: Script<
  [group: string],
  [owner: string, publish: string, channel: string, longest: number, ...values: (string | number)[]]
> = {
  name: 'group-lock/release-partial',
  source: groupLockReleasePartialSource,
  sha: '029f33dec54c8d515d881674ab75757c1222cdc5',
  notAfter: 'first',
  writtenAt: [[18, 33]],
};

export const groupLockRelease: Script<
  [group: string],
  [publish: string, channel: string, owners: number, needed: number, ...names: (string | number)[]]
> = {
  name: 'group-lock/release',
  source: groupLockReleaseSource,
  sha: '0259cd549bbde6bd49af6e5fedf0f090acf64cc3',
  notAfter: undefined,
  writtenAt: [[30, 34]],
};

export const groupLockRenew: Script<[...groups: string[]], [...holds: (string | number)[]]> = {
  name: 'group-lock/renew',
  source: groupLockRenewSource,
  sha: '24546b49f4de52663d5a351d24823944382de2f6',
  notAfter: 'first',
  writtenAt: [[8, 37]],
};

export const groupLockState: Script<[group: string], [owner: string, ...values: string[]]> = {
  name: 'group-lock/state',
  source: groupLockStateSource,
  sha: '4e8011d37ef100c1f49f6d560ab6c276bd08108b',
  notAfter: undefined,
  writtenAt: [],
};

export const latchCountDown: Script<
  [latch: string, requests: string, opened: string],
  [publish: string, channel: string, lane: number, sequence: number]
> = {
  name: 'latch/count-down',
  source: latchCountDownSource,
  sha: 'b9f9a5b39039d451bf61dbeb0d2843f12ddf82f0',
  notAfter: 'last',
  writtenAt: [
    [23, 33],
    [38, 39],
  ],
};

export const latchDelete: Script<
  [latch: string, requests: string, opened: string],
  [publish: string, channel: string, lane: number, sequence: number]
> = {
  name: 'latch/delete',
  source: latchDeleteSource,
  sha: 'ddd5b08759ab4ce8e0c606723b23506d21dc5dde',
  notAfter: 'last',
  writtenAt: [
    [22, 28],
    [32, 34],
  ],
};

export const latchTrySet: Script<
  [latch: string, requests: string],
  [count: number, publish: string, channel: string, lane: number, sequence: number]
> = {
  name: 'latch/try-set',
  source: latchTrySetSource,
  sha: '55a21e982939e7004ad7dfce52b4dc4663b419aa',
  notAfter: 'last',
  writtenAt: [
    [18, 21],
    [24, 26],
  ],
};

export const lockAcquireNested: Script<[lock: string], [owner: string, count: number, leaseMs: number]> = {
  name: 'lock/acquire-nested',
  source: lockAcquireNestedSource,
  sha: 'dc5bead0cc877b022f9f8aae3d48a791ee53d57e',
  notAfter: 'last',
  writtenAt: [[10, 11]],
};

export const lockAcquire: Script<
  [lock: string],
  [owner: string, leaseMs: number, waiters: string, station: string, since: number, registered: number]
> = {
  name: 'lock/acquire',
  source: lockAcquireSource,
  sha: 'd2f53905f5ca18eb8b7dcba401dd394bf1de7ecc',
  notAfter: 'last',
  writtenAt: [
    [10, 13],
    [16, 17],
    [34, 38],
  ],
};

export const lockHandOff: Script<
  [lock: string],
  [
    from: string,
    to: string,
    leaseMs: number,
    publish: string,
    channel: string,
    ours: number,
    waiters: string,
    own: string,
    most: number,
    station: string,
    since: number,
  ]
> = {
  name: 'lock/hand-off',
  source: lockHandOffSource,
  sha: '8ae238d334fb4493baa0095d7a2aaa552d2dcbc3',
  notAfter: 'last',
  writtenAt: [
    [28, 65],
    [67, 69],
  ],
};

export const lockLeave: Script<
  [waiters: string],
  [lock: string, publish: string, own: string, station: string, duty: number]
> = {
  name: 'lock/leave',
  source: lockLeaveSource,
  sha: '9e57da77e85c423ab77c639f7778e40318308c8f',
  notAfter: 'last',
  writtenAt: [[8, 39]],
};

export const lockReleasePartial: Script<[lock: string], [owner: string, count: number, lease: number]> = {
  name: 'lock/release-partial',
  source: lockReleasePartialSource,
  sha: '42d8fdc4337183cb17a18dca43302a882103f508',
  notAfter: 'last',
  writtenAt: [[9, 10]],
};

export const lockRelease: Script<
  [lock: string],
  [
    publish: string,
    channel: string,
    ours: number,
    waiters: string,
    own: string,
    most: number,
    station: string,
    since: number,
    ...owners: string[],
  ]
> = {
  name: 'lock/release',
  source: lockReleaseSource,
  sha: '7c3716b0745cf381eb12e344b3d4896b99e56b29',
  notAfter: undefined,
  writtenAt: [[7, 41]],
};

export const lockRenew: Script<[...locks: string[]], [...ownersAndLeases: (string | number)[]]> = {
  name: 'lock/renew',
  source: lockRenewSource,
  sha: '91b0f5f61f11cb0e2efbc63194a6812b9d924169',
  notAfter: 'first',
  writtenAt: [
    [8, 20],
    [22, 27],
  ],
};

export const lockWake: Script<[waiters: string], [lock: string, publish: string, own: string, most: number]> = {
  name: 'lock/wake',
  source: lockWakeSource,
  sha: '9426fcca1904c2ed87540285fdc880a188634137',
  notAfter: undefined,
  writtenAt: [[3, 30]],
};

export const objectForceUnlock: Script<
  [lock: string, queue: string, timeouts: string, alive: string, requests: string],
  [
    owner: string,
    publish: string,
    channel: string,
    readWrite: string,
    base: string,
    waiters: string,
    own: string,
    waitMs: number,
    lane: number,
    sequence: number,
  ]
> = {
  name: 'object/force-unlock',
  source: objectForceUnlockSource,
  sha: '49a7c46c06045e028609ebbff33c3f1c3ca6dfb7',
  notAfter: 'last',
  writtenAt: [
    [43, 44],
    [46, 140],
  ],
};

export const objectInspectAll: Script<
  [object: string, queue: string, token: string, taken: string],
  [most: number, ...others: (string | number)[]]
> = {
  name: 'object/inspect-all',
  source: objectInspectAllSource,
  sha: 'cd5456135d9070fcc3e457112b21d7ec1bdd0b75',
  notAfter: undefined,
  writtenAt: [],
};

export const objectInspect: Script<[object: string, queue: string, token: string, taken: string], [most: number]> = {
  name: 'object/inspect',
  source: objectInspectSource,
  sha: 'b8109b53c868f57d7b480e13884d000f40110d8d',
  notAfter: undefined,
  writtenAt: [],
};

export const permitExpirableSemaphoreAcquire: Script<
  [semaphore: string, taken: string],
  [leaseMs: number, publish: string, channel: string, declared: number, ...ids: string[]]
> = {
  name: 'permit-expirable-semaphore/acquire',
  source: permitExpirableSemaphoreAcquireSource,
  sha: 'bfe78cdaa72345c4e19c552456caf75c7eaa7e89',
  notAfter: 'first',
  writtenAt: [
    [42, 50],
    [52, 63],
    [65, 67],
    [69, 76],
  ],
};

export const permitExpirableSemaphoreAdd: Script<
  [semaphore: string, taken: string, requests: string],
  [permits: number, declared: number, publish: string, channel: string, lane: number, sequence: number]
> = {
  name: 'permit-expirable-semaphore/add',
  source: permitExpirableSemaphoreAddSource,
  sha: 'aed33387ae0b370178fa68bb5d293a640edbb4f3',
  notAfter: 'last',
  writtenAt: [
    [28, 35],
    [39, 40],
  ],
};

export const permitExpirableSemaphoreCount: Script<
  [semaphore: string, taken: string],
  [publish: string, channel: string, declared: number]
> = {
  name: 'permit-expirable-semaphore/count',
  source: permitExpirableSemaphoreCountSource,
  sha: '1e25e58b78b29f4806d1bdf2162b8c162b029ae1',
  notAfter: undefined,
  writtenAt: [
    [21, 29],
    [31, 34],
  ],
};

export const permitExpirableSemaphoreDelete: Script<
  [semaphore: string, taken: string, requests: string],
  [publish: string, channel: string, lane: number, sequence: number]
> = {
  name: 'permit-expirable-semaphore/delete',
  source: permitExpirableSemaphoreDeleteSource,
  sha: '90e94102ff21156a7ff967bc2f3244d1b8b3abad',
  notAfter: 'last',
  writtenAt: [
    [20, 23],
    [26, 28],
  ],
};

export const permitExpirableSemaphoreExpire: Script<
  [semaphore: string, taken: string, requests: string],
  [ttlMs: number, lane: number, sequence: number]
> = {
  name: 'permit-expirable-semaphore/expire',
  source: permitExpirableSemaphoreExpireSource,
  sha: 'f05aada7c5cb831332fd9a9f323e8768bd20eabc',
  notAfter: 'last',
  writtenAt: [
    [16, 19],
    [22, 25],
  ],
};

export const permitExpirableSemaphoreHandOff: Script<
  [semaphore: string, taken: string],
  [
    publish: string,
    channel: string,
    ours: number,
    declared: number,
    leaseMs: number,
    wanted: number,
    released: number,
    ...ids: string[],
  ]
> = {
  name: 'permit-expirable-semaphore/hand-off',
  source: permitExpirableSemaphoreHandOffSource,
  sha: '81de4ff38a3a178d2be173535d08d1fd708e3e05',
  notAfter: undefined,
  writtenAt: [
    [80, 96],
    [98, 101],
  ],
};

export const permitExpirableSemaphoreLease: Script<
  [semaphore: string, taken: string],
  [id: string, publish: string, channel: string, declared: number]
> = {
  name: 'permit-expirable-semaphore/lease',
  source: permitExpirableSemaphoreLeaseSource,
  sha: 'b1a522c1f6000f5d276e7cc46e2ca57868aeb8d2',
  notAfter: undefined,
  writtenAt: [
    [23, 31],
    [33, 37],
  ],
};

export const permitExpirableSemaphoreRelease: Script<
  [semaphore: string, taken: string],
  [publish: string, channel: string, declared: number, any: number, ...ids: string[]]
> = {
  name: 'permit-expirable-semaphore/release',
  source: permitExpirableSemaphoreReleaseSource,
  sha: '428b96a30f857fce6bf6946d989e17b1c17638d4',
  notAfter: undefined,
  writtenAt: [
    [38, 46],
    [48, 51],
  ],
};

export const permitExpirableSemaphoreSet: Script<
  [semaphore: string, taken: string, requests: string],
  [permits: number, publish: string, channel: string, lane: number, sequence: number]
> = {
  name: 'permit-expirable-semaphore/set',
  source: permitExpirableSemaphoreSetSource,
  sha: '781e76e1cfe88f834e8d941aca506eeffe9f1a52',
  notAfter: 'last',
  writtenAt: [
    [29, 36],
    [40, 41],
  ],
};

export const permitExpirableSemaphoreTrySet: Script<
  [semaphore: string, taken: string, requests: string],
  [permits: number, publish: string, channel: string, lane: number, sequence: number]
> = {
  name: 'permit-expirable-semaphore/try-set',
  source: permitExpirableSemaphoreTrySetSource,
  sha: '34f06075f2dd64437342ab805d5b6c5a2e40121f',
  notAfter: 'last',
  writtenAt: [
    [28, 35],
    [39, 41],
  ],
};

export const permitExpirableSemaphoreUpdateLease: Script<
  [semaphore: string, taken: string],
  [id: string, leaseMs: number, publish: string, channel: string, declared: number]
> = {
  name: 'permit-expirable-semaphore/update-lease',
  source: permitExpirableSemaphoreUpdateLeaseSource,
  sha: '641f98d6068c79b6469005ee7cc7d5cc1ce241e1',
  notAfter: 'last',
  writtenAt: [
    [26, 34],
    [36, 43],
  ],
};

export const readWriteLockAcquireRead: Script<[lock: string], [base: string, owner: string, leaseMs: number]> = {
  name: 'read-write-lock/acquire-read',
  source: readWriteLockAcquireReadSource,
  sha: '4d62456e1caf249d785f778ec7798480d5b249b7',
  notAfter: 'last',
  writtenAt: [[27, 29]],
};

export const readWriteLockAcquireWrite: Script<[lock: string], [writer: string, leaseMs: number]> = {
  name: 'read-write-lock/acquire-write',
  source: readWriteLockAcquireWriteSource,
  sha: '7d2dc14c41981ef39f77279009ed699e30d617c4',
  notAfter: 'last',
  writtenAt: [[18, 19]],
};

export const readWriteLockHandOff: Script<
  [lock: string],
  [base: string, from: string, to: string, leaseMs: number, publish: string, channel: string, ours: number]
> = {
  name: 'read-write-lock/hand-off',
  source: readWriteLockHandOffSource,
  sha: 'fa4869795bb5046bb65455703121ce39fa25bcb4',
  notAfter: 'last',
  writtenAt: [
    [11, 12],
    [14, 33],
  ],
};

export const readWriteLockNestRead: Script<
  [lock: string],
  [base: string, owner: string, count: number, leaseMs: number]
> = {
  name: 'read-write-lock/nest-read',
  source: readWriteLockNestReadSource,
  sha: '844c4f4de26b792ed02101558f54d6e56dfca0b4',
  notAfter: 'last',
  writtenAt: [
    [21, 22],
    [24, 29],
  ],
};

export const readWriteLockNestWrite: Script<[lock: string], [writer: string, count: number, leaseMs: number]> = {
  name: 'read-write-lock/nest-write',
  source: readWriteLockNestWriteSource,
  sha: '9e8e24157b65014f1840b6d65d17ce6c3aedcf29',
  notAfter: 'last',
  writtenAt: [[10, 11]],
};

export const readWriteLockReleasePartial: Script<
  [lock: string],
  [
    base: string,
    owner: string,
    writes: number,
    lease: number,
    publish: string,
    channel: string,
    ...lefts: (string | number)[],
  ]
> = {
  name: 'read-write-lock/release-partial',
  source: readWriteLockReleasePartialSource,
  sha: 'd67db135f0023ec212955244e39509c02697a5cd',
  notAfter: 'first',
  writtenAt: [
    [47, 48],
    [50, 57],
    [59, 70],
  ],
};

export const readWriteLockReleaseReaders: Script<
  [lock: string],
  [base: string, publish: string, channel: string, ...owners: string[]]
> = {
  name: 'read-write-lock/release-readers',
  source: readWriteLockReleaseReadersSource,
  sha: '0a2faa39e6a99eb17a658d3f493b03553a648633',
  notAfter: undefined,
  writtenAt: [
    [44, 45],
    [47, 56],
  ],
};

export const readWriteLockRelease: Script<
  [lock: string],
  [base: string, publish: string, channel: string, ...owners: string[]]
> = {
  name: 'read-write-lock/release',
  source: readWriteLockReleaseSource,
  sha: 'ff3912c18722754590ebd84f9a125936a47253cc',
  notAfter: undefined,
  writtenAt: [
    [45, 46],
    [48, 57],
  ],
};

export const readWriteLockRenewKey: Script<[key: string], [owner: string, leaseMs: number]> = {
  name: 'read-write-lock/renew-key',
  source: readWriteLockRenewKeySource,
  sha: '7926eebfe6f76553340e3b0f0f7fc181c62a3d74',
  notAfter: 'last',
  writtenAt: [[11, 11]],
};

export const readWriteLockRenew: Script<[...locks: string[]], [...holds: (string | number)[]]> = {
  name: 'read-write-lock/renew',
  source: readWriteLockRenewSource,
  sha: 'ada47d7b8187a947738f1e2e070382a74e431b2b',
  notAfter: 'first',
  writtenAt: [[19, 56]],
};

export const requestCancel: Script<[requests: string], [lane: number, sequence: number]> = {
  name: 'request/cancel',
  source: requestCancelSource,
  sha: 'c449edae5daba6ea81688097f2c07b62d143422c',
  notAfter: undefined,
  writtenAt: [[10, 12]],
};

export const semaphoreAcquire: Script<
  [semaphore: string, requests: string],
  [permits: number, declared: number, publish: string, channel: string, lane: number, sequence: number]
> = {
  name: 'semaphore/acquire',
  source: semaphoreAcquireSource,
  sha: '0cce8fcf83f7997585c50450ff22aa5c82faed20',
  notAfter: 'last',
  writtenAt: [
    [26, 29],
    [32, 35],
  ],
};

export const semaphoreAdd: Script<
  [semaphore: string, requests: string],
  [permits: number, declared: number, publish: string, channel: string, lane: number, sequence: number]
> = {
  name: 'semaphore/add',
  source: semaphoreAddSource,
  sha: '1754bcdfb48186d6768fcd436c113a78c02d4e53',
  notAfter: 'last',
  writtenAt: [
    [20, 23],
    [26, 27],
  ],
};

export const semaphoreCancel: Script<
  [semaphore: string, requests: string],
  [permits: number, publish: string, channel: string, lane: number, sequence: number]
> = {
  name: 'semaphore/cancel',
  source: semaphoreCancelSource,
  sha: 'd17cafcbdc9846288eb2e6e9b8c24a20590f6e34',
  notAfter: undefined,
  writtenAt: [
    [19, 23],
    [25, 26],
  ],
};

export const semaphoreDelete: Script<
  [semaphore: string, requests: string],
  [publish: string, channel: string, lane: number, sequence: number]
> = {
  name: 'semaphore/delete',
  source: semaphoreDeleteSource,
  sha: 'da43a563459202ab5da39a1df34d762ce11293de',
  notAfter: 'last',
  writtenAt: [
    [19, 22],
    [25, 27],
  ],
};

export const semaphoreDrain: Script<
  [semaphore: string, requests: string],
  [declared: number, lane: number, sequence: number]
> = {
  name: 'semaphore/drain',
  source: semaphoreDrainSource,
  sha: 'b1cfab1331f08c13beadde9144ec8a0c755dbb92',
  notAfter: 'last',
  writtenAt: [
    [19, 23],
    [26, 27],
  ],
};

export const semaphoreExpire: Script<
  [semaphore: string, requests: string],
  [ttlMs: number, lane: number, sequence: number]
> = {
  name: 'semaphore/expire',
  source: semaphoreExpireSource,
  sha: '88019a059cdf77f94a1bda6db071dd9c41363251',
  notAfter: 'last',
  writtenAt: [
    [15, 18],
    [21, 23],
  ],
};

export const semaphoreRelease: Script<
  [semaphore: string, requests: string],
  [permits: number, missing: number, publish: string, channel: string, lane: number, sequence: number]
> = {
  name: 'semaphore/release',
  source: semaphoreReleaseSource,
  sha: 'b9fe85936c00733b005c2cbe9b66608c0842bb34',
  notAfter: undefined,
  writtenAt: [
    [16, 20],
    [22, 25],
  ],
};

export const semaphoreTrySet: Script<
  [semaphore: string, requests: string],
  [permits: number, ttlMs: number, publish: string, channel: string, lane: number, sequence: number]
> = {
  name: 'semaphore/try-set',
  source: semaphoreTrySetSource,
  sha: 'f1fe097bc70cb4fb12d2f273e3bac14fc283adb5',
  notAfter: 'last',
  writtenAt: [
    [16, 19],
    [22, 25],
  ],
};

export const spinLockRelease: Script<
  [lock: string],
  [publish: string, waiters: string, own: string, ...owners: string[]]
> = {
  name: 'spin-lock/release',
  source: spinLockReleaseSource,
  sha: '126556cda5f2677e5d7a0523eda57206ba4bb4cc',
  notAfter: undefined,
  writtenAt: [[5, 30]],
};
