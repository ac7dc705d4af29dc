-- object/force-unlock: frees a lock of any kind if the given owner has it, and wakes waiters
-- KEYS[1]  lock      hash  that of any kind of lock
-- KEYS[2]  queue     list  owners that wait for a fair lock, head first
-- KEYS[3]  timeouts  zset  owner -> epoch ms after which a JVM removes its place
-- KEYS[4]  alive     zset  owner of Holdfast -> epoch ms after which it counts as dead
-- KEYS[5]  requests  hash  lane -> sequence:answer, of this client
-- ARGV[1]   owner      string  owner id
-- ARGV[2]   publish    string  PUBLISH or SPUBLISH
-- ARGV[3]   channel    string  wake-up channel of the lock, and prefix of those of fair waiters: channel:owner
-- ARGV[4]   readWrite  string  wake-up channel of a read-write lock
-- ARGV[5]   base       string  prefix of the keys of all read holds: base:owner:rwlock_timeout:n
-- ARGV[6]   waiters    string  the roll of the clients that are parked for a plain lock, a key of the same slot
-- ARGV[7]   own        string  prefix of the own channel of each client: own .. client id; '' = leave the roll alone
-- ARGV[8]   wait       int     ms that a fair waiter of Holdfast adds to the timeouts of the waiters behind it
-- ARGV[9]   lane       int     lane of this client that carries the request
-- ARGV[10]  sequence   int     number of the request, larger than all before it in its lane
-- ARGV[11]  notAfter   int     epoch ms of this server after which nothing is changed; 0 = no limit
-- Returns  1   all holds of the owner are released; published if another owner can get the lock now
--          7   as 1; the roll cannot be read here: the client must send lock/wake
--          0   the owner does not have it; nothing changed
--          n   a repeat: the reply of the first run

local lock, queue, timeouts, alive, requests = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, publish, channel, readWrite, base = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local waiters, own, wait, lane, sequence = ARGV[6], ARGV[7], tonumber(ARGV[8]), ARGV[9], ARGV[10]
local notAfter = tonumber(ARGV[11])

-- include: lib/now.lua (defines now)
-- include: lib/lane.lua (defines seen)
if redis.call('TYPE', lock).ok ~= 'hash' then return 0 end
local mode, writer = redis.call('HGET', lock, 'mode'), owner .. ':write'
local reads = redis.call('HGET', lock, owner)
local held, wrote = {}, mode and redis.call('HEXISTS', lock, writer) == 1
if reads then held[1] = owner end
if wrote then held[#held + 1] = writer end
if #held == 0 and not mode then
  -- The values of a group that the owner has.
  local fields = redis.call('HGETALL', lock)
  for f = 1, #fields, 2 do
    if fields[f + 1] == owner then
      local n = #held
      held[n + 1], held[n + 2] = fields[f], fields[f] .. ':' .. owner .. ':expire_time'
      held[n + 3] = fields[f] .. ':' .. owner .. ':lock_count'
    end
  end
end
if #held == 0 then return 0 end

-- include: lib/read-hold-left.lua (defines leftOf)
-- include: lib/read-hold-drop.lua (defines drop)
local longest = 0
if mode then
  -- A reader whose own lease has ended no longer holds the lock, even if its field is still in the hash.
  local fields = redis.call('HGETALL', lock)
  for f = 1, #fields, 2 do
    local others = fields[f] ~= owner and fields[f] ~= writer and tonumber(fields[f + 1]) or 0
    for i = 1, others do
      local left = leftOf(lock, base .. ':' .. fields[f] .. ':rwlock_timeout:' .. i) or redis.call('PTTL', lock)
      if left > longest then longest = left end
    end
  end
  for i = 1, tonumber(reads or '0') do drop(base .. ':' .. owner .. ':rwlock_timeout:' .. i) end
end
local head, swept, spared = redis.call('LINDEX', queue, 0), false, nil
if head or redis.call('EXISTS', alive) == 1 then
  local gone = redis.call('ZRANGEBYSCORE', alive, '-inf', now)
  -- include: lib/fair-sweep.lua
end
-- Publish first: if Redis refuses the message, the owner still has the lock.
if head then
  redis.call(publish, channel .. ':' .. head, '0')
elseif not mode then
  redis.call(publish, channel, '0')
elseif longest <= 0 then
  redis.call(publish, readWrite, wrote and '1' or '0')
end
-- Begin with a command that Redis allows at maxmemory. After this write, Redis allows the other commands, too.
if longest > 0 then redis.call('PEXPIRE', lock, longest) end
if mode and longest <= 0 then
  redis.call('DEL', lock)
else
  for i = 1, #held, 6000 do redis.call('HDEL', lock, unpack(held, i, math.min(i + 5999, #held))) end
end
-- A fair lock wakes its head only, and clients do not park for a read-write lock.
local outcome = 1
if own ~= '' and not head and not mode then
  -- include: lib/tell.lua (defines tell)
  local woken = tell('1', 1)
  if woken > 0 then tell('2', 1) end
  if woken < 0 then outcome = 7 end
end
redis.call('HSET', requests, lane, sequence .. ':' .. outcome)
redis.call('PEXPIRE', requests, '3600000')
if outcome == 7 then return 7 end
return 1
