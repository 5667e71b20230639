-- How many places are taken. KEYS[1] as in take_place.lua
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
return {redis.call('ZCOUNT', KEYS[1], '(' .. now, '+inf')}
