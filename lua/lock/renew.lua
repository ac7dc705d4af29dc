-- lock/renew: extends the leases of locks that their owners still hold
-- KEYS[1..n]  locks  hash  owner -> hold count; all in one slot
-- ARGV[1]  notAfter  int  server time in epoch ms after which the script changes nothing; 0 = no limit
-- ARGV[2..n]  owners and leases  one pair of owner id and lease in ms for each lock, in order of KEYS
-- Returns  an array with one integer for each lock: remaining lease in ms; 0 = the owner no longer holds the lock

local notAfter = tonumber(ARGV[1])

-- include: lib/not-after.lua
local left = {}
local extends = true
for i = 1, #KEYS do
  local lock, owner, lease = KEYS[i], ARGV[2 * i], ARGV[2 * i + 1]
  local held = redis.pcall('HEXISTS', lock, owner)
  -- The key has another type now. Report this lock as lost, and renew the others of the batch.
  local foreign = type(held) == 'table'
  -- Run the command again, so that the script returns any other error.
  if foreign and not string.find(held.err, 'WRONGTYPE', 1, true) then redis.call('HEXISTS', lock, owner) end
  -- Never shorten the lease: another hold of this owner may have a longer one. Never create the field: a lost lock
  -- stays lost.
  if foreign or held == 0 then
    left[i] = 0
  else
    local least = tonumber(lease)
    -- GT extends the lease only if the lease is shorter. Redis before 7.0 has no GT and returns an error.
    local extended = extends and redis.pcall('PEXPIRE', lock, lease, 'GT')
    if extended ~= 1 then
      extends = extended == 0
      local ttl = redis.call('PTTL', lock)
      if ttl >= 0 and ttl < least then redis.call('PEXPIRE', lock, lease) end
      -- A key without expiry counts as held for the requested lease.
      if ttl > least then least = ttl end
    end
    left[i] = math.max(least, 1)
  end
end
return left
