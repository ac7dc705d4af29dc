import { tasks as besideRedissonTasks } from './beside-redisson-tasks.js';
import { workloads as besideRedisson } from './beside-redisson.js';
import * as cluster from './cluster.js';
import * as contended from './contended.js';
import * as handOff from './hand-off.js';
import * as sharing from './sharing.js';
import * as uncontended from './uncontended.js';
import * as waiting from './waiting.js';
import * as watchdog from './watchdog.js';

export const workloads = [
  ...uncontended.workloads,
  ...contended.workloads,
  ...handOff.workloads,
  ...sharing.workloads,
  ...waiting.workloads,
  ...watchdog.workloads,
  ...cluster.workloads,
  ...besideRedisson,
];

/** What their worker processes are asked to do. */
export const tasks = {
  ...uncontended.tasks,
  ...contended.tasks,
  ...handOff.tasks,
  ...sharing.tasks,
  ...waiting.tasks,
  ...watchdog.tasks,
  ...cluster.tasks,
  ...besideRedissonTasks,
};
