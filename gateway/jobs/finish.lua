-- Ends a job with what its current attempt made of it.
--
-- ARGV   1 id, 2 fence, 3 done or failed, 4 reason or nothing, 5 answer or nothing
-- Reply  {1}, or {0} if this attempt's word does not count any more, and then nothing changed
local id = ARGV[1]
if not is_current(id, ARGV[2]) then return {0} end
finish(id, ARGV[3], ARGV[4])
if ARGV[5] ~= '' then redis.call('HSET', key_of(id), 'answer', ARGV[5]) end
if ARGV[3] == 'done' then redis.call('HDEL', PACE, 'failures') end
return {1}
