export const HELP = `Shows what is locked in Redis, by which process, and who waits.

Usage: holdfast <command> [options]

Commands:
  ls [pattern]      lists locks, semaphores, permits and latches
  inspect <name>    shows one of them, with its owners and waiters
  watch <name>      prints a line for each change
  top [pattern]     shows a live table: most waited for first, then held longest
  unlock <name>     frees a lock, after you have typed its name again
  doctor            checks the server, its settings and the permissions
  ui                serves a live page on this machine
  explain <code>    explains an error, such as ERR_LOCK_TIMEOUT

Connection:
  --url <url>             redis:// or rediss://, without a password (default: HOLDFAST_URL, REDIS_URL, or
                          redis://127.0.0.1:6379)
  --cluster <addresses>   <host>:<port>, several separated by commas
  --sentinel <addresses>  <master name>@<host>:<port>, several addresses separated by commas
  --db <number>           the database
  --prefix <prefix>       the key prefix of the clients
  --tls                   uses TLS
  --timeout <ms>          time for one command (default: 5000)

Other options:
  --json                  one JSON object on each line
  --limit <n>             ls, top: at most so many rows
  --interval <s>          watch, top: seconds between two looks (default: 0.25 and 2)
  --count <n>             top: ends after so many tables
  --owner <id>            unlock: frees the lock only if this owner has it
  --yes                   unlock: does not ask; needs --owner
  --port <port>           ui: the port (default: a free one)
  --open                  ui: opens the page in the browser
  --actions               ui: the page may free locks
  -h, --help              this text
  -v, --version           the version

Environment: HOLDFAST_URL, REDIS_URL, HOLDFAST_CLUSTER, HOLDFAST_SENTINEL, HOLDFAST_PREFIX, HOLDFAST_USERNAME,
  HOLDFAST_PASSWORD, HOLDFAST_SENTINEL_PASSWORD, HOLDFAST_TLS=1, HOLDFAST_TLS_CA, HOLDFAST_TLS_CERT, HOLDFAST_TLS_KEY (paths of PEM files),
  HOLDFAST_TLS_SERVERNAME

Exit codes: 0 done, 1 the answer is no, 2 wrong arguments, 3 Redis is unavailable or refuses, 130 interrupted`;
