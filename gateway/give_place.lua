-- Gives a place back. KEYS[1] as in take_place.lua, ARGV[1] the id; who holds none changes nothing.
return {redis.call('ZREM', KEYS[1], ARGV[1])}
