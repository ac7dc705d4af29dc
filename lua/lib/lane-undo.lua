-- lib/lane-undo: restores the lane of a request that Redis refused halfway
-- Reads    requests, lane, seen
-- Changes  the entry of the lane, so that a repeat runs completely
-- The script runs the refused command again after this, to return its error.

redis.call('HSET', requests, lane, seen or '0:-4')
redis.call('PEXPIRE', requests, '3600000')
