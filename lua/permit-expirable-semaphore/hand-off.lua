-- permit-expirable-semaphore/hand-off: exchanges released permits for new ones of waiters of the same client
-- KEYS[1]  semaphore  string  free permits
-- KEYS[2]  taken      zset    permit id (16 bytes) -> epoch ms at which its lease ends
-- ARGV[1]     publish   string  PUBLISH or SPUBLISH
-- ARGV[2]     channel   string  wake-up channel of this semaphore
-- ARGV[3]     ours      int     own subscribers of the channel; only release if there are more; -1 = do not check
-- ARGV[4]     declared  int     number of permits of the semaphore; -1 = unknown
-- ARGV[5]     lease     int     ms for the new permits; -1 = no expiry
-- ARGV[6]     wanted    int     number of new ids of each exchange; not more than it releases
-- ARGV[7]     released  int     number of ids that each exchange releases
-- ARGV[8..n]  ids       string  for each exchange: its new permit ids in hex, and then those to release
-- Returns  an array with one number for each exchange: 1 = released, and the next waiter has its new permits; 2 = only
--            released, because other clients wait or the number of free permits is negative; 0 = none of the permits
--            to release is taken, or their leases have expired, and nothing changed; 3 = the same for some of them

local semaphore, taken = KEYS[1], KEYS[2]
local publish, channel, ours, declared = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local lease, wanted, released = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

local time = redis.call('TIME')
local now = math.floor(time[1] * 1000 + time[2] / 1000)
local idsFrom = 8
-- include: lib/permit-ids.lua (defines ids)
-- `leaving`: the ids that an earlier exchange of this request releases. A caller may release one permit twice at once.
local replies, pending, leaving, first = {}, {}, {}, math.huge
for from = 1, #ids, wanted + released do
  local known, soonest = 0, math.huge
  for i = from + wanted, from + wanted + released - 1 do
    local ends = tonumber(redis.call('ZSCORE', taken, ids[i]) or '-1')
    if ends > now and not leaving[ids[i]] then
      known = known + 1
      soonest = math.min(soonest, ends)
    end
  end
  if known == released then
    pending[#pending + 1] = from
    for i = from + wanted, from + wanted + released - 1 do leaving[ids[i]] = true end
    first = math.min(first, soonest)
    replies[#replies + 1] = 1
  elseif known > 0 then
    replies[#replies + 1] = 3
  elseif tonumber(redis.call('ZSCORE', taken, ids[from]) or '-1') > now then
    -- A repeat finds the new permits. It writes nothing: their lease counts from the first run.
    replies[#replies + 1] = 1
  else
    replies[#replies + 1] = 0
  end
end
if #pending == 0 then return replies end
-- include: lib/others-wait.lua (defines others)
-- include: lib/permit-count.lua (defines over)
local free = count or 0
local added, removed = {}, {}
for _, from in ipairs(pending) do
  local takes = wanted
  -- One exchange makes room for other clients. The others of the request begin the next streak, as if they came later.
  -- setPermits() may have made the number negative: fewer permits may be taken than now.
  if others or free < 0 then
    takes, others = 0, false
    replies[(from - 1) / (wanted + released) + 1] = 2
  end
  for i = from, from + takes - 1 do added[#added + 1] = ids[i] end
  for i = from + wanted, from + wanted + released - 1 do removed[#removed + 1] = ids[i] end
  free = free + released - takes
end
local freed = #removed - #added
-- Redisson stores this number for a permit without an expiry. A larger one means the same.
local ends = 922337203685477
if lease >= 0 and now + lease < ends then ends = now + lease end
if freed > 0 then
  if free > 0 then redis.call(publish, channel, free) end
elseif ends < first then
  -- A waiter tries again when the lease that it knows ends. Wake it for a lease that ends sooner.
  redis.call(publish, channel, '1')
end
-- This command removes nothing. If Redis refuses to remove permits, it refuses this one, and nothing has changed.
redis.call('ZREM', taken, '')
if made and freed > 0 then
  redis.call('SET', semaphore, count + freed, unpack(lifetime))
elseif count and freed > 0 then
  redis.call('INCRBY', semaphore, freed)
end
-- Add the new permits before removing the old ones: while the slot migrates to another node, Redis refuses commands on
-- an empty set.
for i = 1, #added, 1000 do
  local members = {}
  for j = i, math.min(i + 999, #added) do
    members[#members + 1] = ends
    members[#members + 1] = added[j]
  end
  -- Redis can refuse only the first ZADD. Undo the count then.
  if type(redis.pcall('ZADD', taken, unpack(members))) ~= 'number' then
    if made and freed > 0 then
      redis.call('DEL', semaphore)
    elseif count and freed > 0 then
      redis.call('INCRBY', semaphore, -freed)
    end
    redis.call('ZADD', taken, unpack(members))
  end
end
for i = 1, #removed, 1000 do redis.call('ZREM', taken, unpack(removed, i, math.min(i + 999, #removed))) end
return replies
