-- Takes one place in flight if one is free.
--
-- KEYS[1]  sorted set: the id of who holds a place -> the millisecond at which the lease lapses
-- ARGV     1 places there are, 2 milliseconds of a lease, 3 id
-- Reply    {1}, or {0} if no place is free, and then nothing changed
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local lapses = now + ARGV[2]

-- Later than any lease can end: the server's clock went back.
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. lapses, '+inf')) do
  redis.call('ZADD', KEYS[1], lapses, id)
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return {0} end
redis.call('ZADD', KEYS[1], lapses, ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {1}
