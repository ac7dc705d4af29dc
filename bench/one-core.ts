import { spawnSync } from 'node:child_process';
import { cpus } from 'node:os';

/** The last: interrupts tend to go to the first. */
const CORE = String(cpus().length - 1);

/** Keeps a process, with all its threads, on one core. Only Linux has a command for it. */
export const pin = (pid: number): void => setCores(pid, CORE);

export const unpin = (pid: number): void => setCores(pid, `0-${CORE}`);

function setCores(pid: number, cores: string): void {
  const { status, error, stderr } = spawnSync('taskset', ['-a', '-c', '-p', cores, String(pid)], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`taskset: ${error?.message ?? stderr}`);
}

/** Whether it can be done here. */
export const canPin = (): boolean => spawnSync('taskset', ['-p', String(process.pid)]).status === 0;
