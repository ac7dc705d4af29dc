-- read-write-lock/renew: extends the leases of holds that their owners still have
-- KEYS[1..n]  locks  hash  mode -> read or write; owner -> read holds; owner:write -> write holds; all of one slot
-- ARGV[1]  notAfter  int  epoch ms of this server after which nothing is changed; 0 = no limit
-- ARGV[2..n]  holds  for each lock: what the keys of its read holds begin with, owner, lease in ms, 1 to renew its
--            write holds, read holds, 1 for each to renew
-- Returns  an array with one integer for each lock: ms that its owner has left, 0 = it does not hold it any more
--          -3  too late; nothing changed
--              an error that begins with TRYAGAIN: a slot that moves has a read hold at its other node; only locks
--              before that one are renewed
-- Used by  src/redis/scripts/read-write-lock.ts (renew)

local notAfter = tonumber(ARGV[1])

-- include: lib/read-hold-left.lua

-- include: lib/not-after.lua
local lefts = {}
local a = 2
for k = 1, #KEYS do
  local lock, base, owner, lease = KEYS[k], ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 2])
  local write, reads = ARGV[a + 3], tonumber(ARGV[a + 4])
  local wrote = redis.pcall('HEXISTS', lock, owner .. ':write')
  -- Another type has taken its place. The others of this batch shall not be lost with it.
  local foreign = type(wrote) == 'table'
  -- What else it says, it says again to the whole script.
  if foreign and not string.find(wrote.err, 'WRONGTYPE', 1, true) then redis.call('HEXISTS', lock, owner) end
  local whole, left = redis.call('PTTL', lock), 0
  -- A key without expiry is held at least as long as asked for.
  if whole == -1 then whole = lease end
  if wrote == 1 then
    left = whole
    if write == '1' and left < lease then left = lease end
  end
  local counted, over = 0, {}
  if not foreign then counted = tonumber(redis.call('HGET', lock, owner) or '0') end
  for i = 1, math.min(reads, counted) do
    -- Only the owner's own keys: a dead reader must not live on through us.
    local hold = base .. ':' .. owner .. ':rwlock_timeout:' .. i
    local ttl = leftOf(lock, hold)
    if not ttl then return redis.error_reply('TRYAGAIN the slot is moving, and a read hold is at its other node') end
    if ARGV[a + 4 + i] == '1' then
      if ttl == -2 then over[#over + 1] = hold end
      if ttl >= 0 and ttl < lease then
        redis.call('PEXPIRE', hold, lease)
        ttl = lease
      end
    end
    if ttl > left then left = ttl end
  end
  -- One whose own lease is over is held by the others of its owner; where there are none it does not come back.
  if left > 0 then
    for _, hold in ipairs(over) do
      redis.call('SET', hold, '1', 'PX', lease)
      left = math.max(left, lease)
    end
  end
  if left > whole then redis.call('PEXPIRE', lock, left) end
  lefts[k] = left
  a = a + 5 + reads
end
return lefts
