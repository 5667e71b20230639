-- Renews the lease of an attempt.
--
-- ARGV   1 id, 2 fence, 3 milliseconds of a lease
-- Reply  {1}, or {0} if the job has ended or another attempt has begun
local id = ARGV[1]
if not is_current(id, ARGV[2]) then return {0} end
redis.call('HSET', key_of(id), 'lease', now + ARGV[3])
wake(id, now + ARGV[3])
return {1}
