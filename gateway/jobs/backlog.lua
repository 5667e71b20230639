-- Reply  {open jobs, milliseconds that the oldest of them has waited}
local oldest = redis.call('ZRANGE', OPEN, 0, 0, 'WITHSCORES')
return {redis.call('ZCARD', OPEN), oldest[2] and math.max(0, now - oldest[2]) or 0}
