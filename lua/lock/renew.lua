-- lock/renew: extends the leases of locks that their owners still have
-- KEYS[1..n]  locks  hash  owner -> hold count; all of one slot
-- ARGV[1]  notAfter  int  epoch ms of this server after which nothing is changed; 0 = no limit
-- ARGV[2..n]  owners and leases  one pair of owner id and lease in ms for each lock, in order of KEYS
-- Returns  an array with one integer for each lock: ms that it has left, 0 = its owner does not hold it any more
--          -3  too late; nothing changed
-- Used by  src/redis/scripts/lock.ts (renew)

local notAfter = tonumber(ARGV[1])

-- include: lib/not-after.lua
local left = {}
for i = 1, #KEYS do
  local lock, owner, lease = KEYS[i], ARGV[2 * i], ARGV[2 * i + 1]
  local held = redis.pcall('HEXISTS', lock, owner)
  -- Another type has taken its place. The others of this batch shall not be lost with it.
  local foreign = type(held) == 'table'
  -- What else it says, it says again to the whole script.
  if foreign and not string.find(held.err, 'WRONGTYPE', 1, true) then redis.call('HEXISTS', lock, owner) end
  -- Never shortens: another hold of this owner may have a longer lease. Never creates: what was lost stays lost.
  if foreign or held == 0 then
    left[i] = 0
  else
    local ttl, least = redis.call('PTTL', lock), tonumber(lease)
    if ttl >= 0 and ttl < least then redis.call('PEXPIRE', lock, lease) end
    -- A key without expiry is held at least as long as asked for.
    if ttl < least then ttl = least end
    left[i] = math.max(ttl, 1)
  end
end
return left
