-- Puts a job back, to be attempted again.
--
-- ARGV   1 id, 2 fence, 3 milliseconds until then, 4 reason or nothing, 5 most milliseconds for
--        which no attempt at all may begin, because of an outage; "0" without one, 6 "1" if the
--        attempt does not count
-- Reply  {1}, or {0} if this attempt's word does not count any more, and then nothing changed
local id, at = ARGV[1], now + ARGV[3]
if not is_current(id, ARGV[2]) then return {0} end
redis.call('HSET', key_of(id), 'state', 'queued', 'reason', ARGV[4], 'not_before', at)
redis.call('HDEL', key_of(id), 'lease')
if ARGV[6] == '1' then redis.call('HINCRBY', key_of(id), 'attempts', -1) end
if at > now then
  wake(id, at)
else
  wake(id, number(id, 'expires'))
  enqueue(id)
end
local longest = tonumber(ARGV[5])
if longest > 0 then
  local failures = redis.call('HINCRBY', PACE, 'failures', 1)
  local pause = math.min(longest, 250 * 2 ^ math.min(failures, 20))
  local known = math.min(tonumber(redis.call('HGET', PACE, 'outage') or 0), now + longest)
  redis.call('HSET', PACE, 'outage', string.format('%.0f', math.max(known, now + pause)))
end
return {1}
