-- Extends the leases of those who hold a place; one that was lost with its state takes it again.
--
-- KEYS[1]  as in take_place.lua
-- ARGV     1 milliseconds of a lease, then the ids
-- Reply    {how many were lost}
local clock = redis.call('TIME')
local lapses = clock[1] * 1000 + math.floor(clock[2] / 1000) + ARGV[1]
local lost = 0
for holder = 2, #ARGV do
  lost = lost + redis.call('ZADD', KEYS[1], lapses, ARGV[holder])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return {lost}
