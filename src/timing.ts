/*
 * Every duration that the client chooses itself, in milliseconds, with its reason. The options (options.ts) set the
 * others. Counts and sizes are beside their mechanisms.
 */
import type { Pauses } from './back-off.js';

const HOUR_MS = 3_600_000;

/* ---- Clocks ---- */

/**
 * A larger difference between the monotonic and the wall clock is a sleep of the machine or a correction of the wall
 * clock. A smaller one comes from reading the clocks one after the other.
 */
export const CLOCK_JUMP_MS = 50;
/** Normal slack of a timer. */
export const TIMER_SLACK_MS = 1;

/* ---- How a call gets a lock ---- */

/**
 * Extra wait after a TTL. Redis ends a lease at some moment of its last millisecond, and an earlier try would find the
 * lock busy once more.
 */
export const AFTER_LEASE_MS = 2;
/** Wait after a TTL of 0: the key is in its last millisecond. */
export const TTL_ZERO_MS = 10;
/**
 * The head of a local line leaves this time to other clients after a release of its own client, which it knows of one
 * round trip before them.
 */
export const YIELD_MS = 20;
/** The same, counted from the message of the release: the other clients get it at about the same time. */
export const YIELD_AFTER_MESSAGE_MS = 2;
/** Pauses of the tries of a line while Redis is unavailable, or replies too late. */
export const TRY_PAUSES: Pauses = { first: 100, longest: 1_000, factor: 2 };
/**
 * Time between two probes. A head probes while it is not subscribed, because no message can reach it. The random part
 * spreads the probes of many heads that were disconnected together.
 */
export const PROBE_MS = { least: 1_000, most: 2_000 };
/**
 * Time after which the head asks Redis whether a hold of its own client still has the lock. Another program may have
 * deleted the key. Most sections are shorter, and a hand-over then saves the request.
 */
export const OWN_HOLD_PROBE_MS = { least: 100, most: 200 };
/** A subscription outlives its last waiter. Otherwise a busy lock would subscribe once per section. */
export const LINGER_MS = 500;
/**
 * Limit of every series of hand-overs. In a cluster without sharded pub/sub, the script does not see subscribers at other
 * nodes. Without a limit, a series could last forever.
 */
export const STREAK_MS = 1_000;
/** Time for which the client sends no request about the roll of a lock after Redis has refused one. */
export const ROLL_REFUSED_MS = 60_000;
/** Sections without a request may follow one another for so long before other events of the process get their turn. */
export const LOCAL_TURN_MS = 2;
/** Longest pause between two refreshes of fair waiters. Three refreshes must fit into `fairWaiterTimeout`. */
export const FAIR_REFRESH_MS = 1_000;

/* ---- How a lock is held and released ---- */

/** The client ends a hold before its lease ends in Redis: by 1 % of the lease, within these limits. */
export const MARGIN_MS = { least: 5, most: 1_000 };
/**
 * A waiter of another client may take a lease for longer than it is. Only a message wakes it in time, so the client releases
 * such a lock this long before its lease ends, and not before it ends the hold. It covers a late timer and the way to Redis.
 */
export const RELEASE_BEFORE_END_MS = 50;
/** A shorter lease could never be used, because of {@link MARGIN_MS}. */
export const MIN_LEASE_MS = 10;
/** The watchdog would renew a shorter lease dozens of times a second, and late timers would lose it. */
export const MIN_RENEWED_LEASE_MS = 100;
/** The watchdog repeats a renewal that got no reply. */
export const RENEWAL_RETRY_MS = 1_000;
/** The watchdog checks deadlines that are no further apart together. */
export const DEADLINES_TOGETHER_MS = 2;
/** A call that has waited for a shorter time keeps its whole command deadline. */
export const WHOLE_DEADLINE_MS = 5;
/**
 * The lease in Redis outlasts a hold that was released with `after`. A lease that ended first would leave nothing to
 * release, so the release at the end of the hold would publish no message.
 */
export const LEASE_BEYOND_MS = 1_000;
/** Pauses of a release in the background. A closing client makes only the first one. */
export const RELEASE_PAUSES: Pauses = { first: 100, longest: 5_000, factor: 2 };

/* ---- Permits and latches ---- */

/** Redis deletes a lane this time after its last use. A later repeat could take effect again. */
export const LANE_MS = HOUR_MS;
/** The client repeats a refused release of permits. A missing permission may never be granted. */
export const REFUSED_RELEASE_MS = HOUR_MS;

/**
 * With the default of `replicas`, a replica that has told the master nothing for longer than this, in seconds, counts as
 * none. A replica reports once a second.
 */
export const MAX_REPLICA_LAG_S = 5;

/* ---- Several servers ---- */

/**
 * A multi-lock that holds a member of one name waits this long for the next one, if another process may take them in
 * another order. The random part lets one of two such calls begin again before the other.
 */
export const OTHER_ORDER_MS = { least: 1_000, most: 2_000 };
/** A RedLock waits at each other server after the first one: releases of the previous hold may be pending there. */
export const OTHER_SERVERS_MS = 100;
/** Longest wait at one server: a minority may hold that server for long while a majority becomes free. */
export const ONE_SERVER_MS = 2_000;
/** Random pause between rounds that ended without a majority, so that two owners do not split the servers again. */
export const SPLIT_PAUSE_MS = { least: 5, most: 50 };
/** Pauses after rounds with too few replies. */
export const OUTAGE_PAUSES: Pauses = { first: 100, longest: 1_000, factor: 2 };
/**
 * A RedLock that another owner holds up does not wait longer for a missing reply: the two would keep each other out
 * meanwhile. A server whose replies take long gets three times its usual time.
 */
export const SLOW_SERVER_MS = 100;
/** While calls wait in the line of one server of a RedLock, the client asks that server whether it still replies. */
export const LINE_CHECK_MS = 100;
/** A server that has left a request unanswered is not waited for in this time, unless it replies. */
export const UNRESPONSIVE_MS = 5_000;
/** Assumed drift between the clocks of independent servers, in addition to a share of the lease. */
export const MIN_DRIFT_MS = 2;

/* ---- Connections ---- */

/** Pauses before a reconnection, and a random part, so that many clients do not reconnect together. */
export const RECONNECT_PAUSES: Pauses = { first: 25, longest: 500, factor: 2 };
export const RECONNECT_JITTER_MS = 25;
/** A server that does not close its side of a connection gets this time. Then the client destroys the socket. */
export const DISCONNECT_MS = 50;
/**
 * If a connection closes within this time after it became ready, the server has rejected it. A server that has reached
 * `maxclients` accepts the connection, sends an error and closes it; ioredis reports such a connection as ready. The time
 * is long because a busy process notices the close late.
 */
export const REJECTED_MS = 500;
/** The option `credentials` answers within this time, or the client asks again. It may have to call another service. */
export const CREDENTIALS_MS = 10_000;
/** Pauses between two questions for newer credentials while there are none. The first one is the shortest of all. */
export const CREDENTIALS_PAUSES: Pauses = { first: 250, longest: 10_000, factor: 2 };
/** Age at which the estimate of the server clock is refreshed, because clocks drift. */
export const SERVER_CLOCK_AGE_MS = 60_000;
/** The client leaves a server that is not a master, and reconnects. It does so at most once in this time. */
export const LEAVE_EVERY_MS = 1_000;
/** Between two PINGs while a call waits. Without them, a dead connection would look like a lock that stays busy. */
export const PING_MS = 5_000;
/** The client repeats a SUBSCRIBE that the server refused. */
export const RESUBSCRIBE_MS = 250;
/** The client collects channels without a waiter for this time. Then one UNSUBSCRIBE ends their subscriptions. */
export const UNSUBSCRIBE_MS = 100;
/** The client looks again for replicas this time after it found none. */
export const NO_REPLICAS_MS = 5_000;

/* ---- Clusters ---- */

/** Pauses between two requests for the map while it does not help. */
export const MAP_PAUSES: Pauses = { first: 100, longest: 1_000, factor: 1.5 };
/** Other nodes get this time after the first reply, because they may have a newer view. */
export const NEWER_MAP_MS = 50;
/** The client keeps a server that a redirection named, even if the map does not list it. */
export const REDIRECTED_NODE_MS = 10_000;

/* ---- Reports and checks ---- */

/** Between two looks at the open holds of a client that drains. */
export const DRAIN_LOOK_MS = 10;
/** A call that waits this long behind a hold of its own process may wait for itself. */
export const LONG_WAIT_MS = 5_000;
/** Long waits that are due within this time are checked together, because a check walks all holds of the process. */
export const LONG_WAITS_TOGETHER_MS = 100;
/** A list of the connections of a server stays valid. Large servers have tens of thousands. */
export const CONNECTIONS_MS = 2_000;
/** A smaller difference between two clocks is no finding: it is less than the time that a message may take. */
export const CLOCK_DIFFERENCE_MS = 1_000;
/** Lease of a probe. A probe that Redis refuses half-way leaves a key that ends by itself. */
export const PROBE_LEASE_MS = 2_000;
/** A probe waits for permits that no other client takes. */
export const PROBE_WAIT_MS = 100;
/** Between two looks whether the server has confirmed the subscription of that probe. */
export const PROBE_LOOK_MS = 10;
