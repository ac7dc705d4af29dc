import { tasks as network } from '../network.js';
import { tasks as twoBuilds } from '../two-builds/tasks.js';
import * as atOnce from './at-once.js';
import { tasks as besideRedissonTasks } from './beside-redisson-tasks.js';
import { workloads as besideRedisson } from './beside-redisson.js';
import * as cluster from './cluster.js';
import * as contended from './contended.js';
import * as fairLock from './fair-lock.js';
import * as fleet from './fleet.js';
import * as handOff from './hand-off.js';
import * as hotLocks from './hot-locks.js';
import { tasks as hotTasks } from './hot-tasks.js';
import * as redLock from './red-lock.js';
import * as sharing from './sharing.js';
import * as uncontended from './uncontended.js';
import * as waiting from './waiting.js';
import * as watchdog from './watchdog.js';

export const workloads = [
  ...uncontended.workloads,
  ...contended.workloads,
  ...fairLock.workloads,
  ...fleet.workloads,
  ...handOff.workloads,
  ...hotLocks.workloads,
  ...sharing.workloads,
  ...waiting.workloads,
  ...watchdog.workloads,
  ...atOnce.workloads,
  ...redLock.workloads,
  ...cluster.workloads,
  ...besideRedisson,
];

/** What their worker processes are asked to do. */
export const tasks = {
  ...uncontended.tasks,
  ...contended.tasks,
  ...fleet.tasks,
  ...handOff.tasks,
  ...hotTasks,
  ...sharing.tasks,
  ...waiting.tasks,
  ...watchdog.tasks,
  ...atOnce.tasks,
  ...redLock.tasks,
  ...cluster.tasks,
  ...besideRedissonTasks,
  ...network,
  ...twoBuilds,
};
