import { spawn, type ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';

/**
 * Its input ends when this process ends in any way (an exit handler would not run after a kill -9). Then it kills the
 * registered processes.
 */
const SCRIPT = `
pids=' '
while read -r what pid; do
  case $what in
    watch) pids="$pids$pid " ;;
    forget) case $pids in *" $pid "*) pids="\${pids%% $pid *} \${pids#* $pid }" ;; esac ;;
  esac
done
[ "$pids" = ' ' ] || kill -9 $pids 2>/dev/null
`;

let reaper: ChildProcess | undefined;
const watched = new Set<number>();

/** The process will not outlive this one. */
export function reapWithUs(pid: number): void {
  watched.add(pid);
  if (!reaper) {
    // A separate process group, so that a Ctrl-C does not end it before its work is done.
    reaper = spawn('sh', ['-c', SCRIPT], { stdio: ['pipe', 'ignore', 'ignore'], detached: true });
    reaper.unref();
    reaper.stdin?.on('error', () => undefined);
    (reaper.stdin as Socket).unref();
  }
  reaper.stdin?.write(`watch ${pid}\n`);
}

/** The process has ended, its number may be another's soon. */
export function reaped(pid: number): void {
  if (!watched.delete(pid)) return;
  reaper?.stdin?.write(`forget ${pid}\n`);
  if (watched.size > 0) return;
  reaper?.stdin?.end();
  reaper = undefined;
}
