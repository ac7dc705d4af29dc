import type { Sequence } from './sequence.js';

/** A lock from the first try to the release, and the wait of another process. */
const LIFE: Sequence = {
  title: "A lock's life",
  description:
    'Process A acquires, renews and releases a lock; process B tries, subscribes, sleeps, is woken and acquires it.',
  actors: ['process A', 'Redis', 'process B'],
  steps: [
    { from: 'process A', to: 'Redis', text: 'acquire, lease 30 s' },
    { from: 'Redis', to: 'process A', text: 'granted', kind: 'reply' },
    { from: 'process B', to: 'Redis', text: 'acquire' },
    { from: 'Redis', to: 'process B', text: 'busy for 29 s more', kind: 'reply' },
    { from: 'process B', to: 'Redis', text: 'SUBSCRIBE' },
    { from: 'process B', to: 'Redis', text: 'acquire: was it freed meanwhile?' },
    { from: 'Redis', to: 'process B', text: 'busy', kind: 'reply' },
    { at: 'process B', note: 'sleeps and sends nothing' },
    { from: 'process A', to: 'Redis', text: 'renew, every 10 s' },
    { from: 'process A', to: 'Redis', text: 'release' },
    { from: 'Redis', to: 'process B', text: 'message: the lock is free', kind: 'message' },
    { from: 'process B', to: 'Redis', text: 'acquire' },
    { from: 'Redis', to: 'process B', text: 'granted', kind: 'reply' },
  ],
  holds: [
    { actor: 'process A', from: 1, to: 9 },
    { actor: 'process B', from: 12, to: 12.6 },
  ],
};

const HAND_OVER: Sequence = {
  title: 'Hand-over: inside a process, and between processes',
  description:
    'Two calls of process A pass the lock by one script; after the limits of handOff the release goes through Redis and wakes process B.',
  actors: ['call 1 of A', 'call 2 of A', 'Redis', 'process B'],
  steps: [
    { at: 'call 2 of A', note: 'waits behind call 1' },
    { at: 'process B', note: 'has subscribed, sleeps' },
    { from: 'call 1 of A', to: 'Redis', text: 'one script: release, acquire for call 2' },
    { from: 'Redis', to: 'call 2 of A', text: 'handed', kind: 'reply' },
    { rule: 'and so on, up to 16 sections or 100 ms while other clients wait' },
    { from: 'call 2 of A', to: 'Redis', text: 'release' },
    { from: 'Redis', to: 'process B', text: 'message', kind: 'message' },
    { from: 'process B', to: 'Redis', text: 'acquire' },
    { from: 'Redis', to: 'process B', text: 'granted', kind: 'reply' },
  ],
  holds: [
    { actor: 'call 1 of A', from: 0, to: 2 },
    { actor: 'call 2 of A', from: 3, to: 5 },
    { actor: 'process B', from: 8, to: 8.6 },
  ],
};

const LOST_REPLY: Sequence = {
  title: 'What happens when a reply is lost',
  description:
    'A repeated acquire counts once, because it names the same owner; a late acquire changes nothing, because it carries a time limit.',
  actors: ['client', 'Redis'],
  steps: [
    { from: 'client', to: 'Redis', text: 'acquire for owner 7, void after 12:00:03' },
    { at: 'Redis', note: 'owner 7 has the lock' },
    { from: 'Redis', to: 'client', text: 'granted', kind: 'lost' },
    { from: 'client', to: 'Redis', text: 'the same request again, after 1 s' },
    { at: 'Redis', note: 'owner 7 has it already: nothing changes' },
    { from: 'Redis', to: 'client', text: 'granted: one hold', kind: 'reply' },
    { rule: 'If no attempt is answered, the call rejects at 12:00:03 and releases in the background what it may have' },
    { from: 'client', to: 'Redis', text: 'an attempt that was stuck in a buffer arrives at 12:00:09', kind: 'late' },
    { at: 'Redis', note: 'void since 12:00:03: nothing changes' },
  ],
  holds: [{ actor: 'client', from: 5, to: 5.7 }],
};

const RED_LOCK: Sequence = {
  title: "RedLock's rounds",
  description:
    'The client asks three servers at once; two grants are a majority; the late grant of the third joins the hold, and the release goes to all.',
  actors: ['client', 'server 1', 'server 2', 'server 3'],
  steps: [
    { from: 'client', to: 'server 1', text: 'acquire' },
    { from: 'client', to: 'server 2', text: 'acquire, at the same time' },
    { from: 'client', to: 'server 3', text: 'acquire, at the same time' },
    { from: 'server 1', to: 'client', text: 'granted', kind: 'reply' },
    { from: 'server 2', to: 'client', text: 'granted', kind: 'reply' },
    { at: 'client', note: 'two of three: inside' },
    { from: 'server 3', to: 'client', text: 'granted late: joins the hold', kind: 'reply' },
    { from: 'client', to: 'server 1', text: 'release' },
    { from: 'client', to: 'server 2', text: 'release, at the same time' },
    { from: 'client', to: 'server 3', text: 'release, at the same time' },
    {
      rule: 'Without a majority the client releases each grant. If others have the lock, it waits in line at one server and asks all again',
    },
  ],
  holds: [{ actor: 'client', from: 5, to: 7 }],
};

export const SEQUENCES: Readonly<Record<string, Sequence>> = {
  'life-of-a-lock': LIFE,
  'hand-over': HAND_OVER,
  'lost-reply': LOST_REPLY,
  redlock: RED_LOCK,
};
