-- Stands before every script's own text: the pool's state at this moment.
--
-- KEYS[1]  hash: 'pool' as packed below; 'opens', the microsecond from which anything is admitted;
--          'lease:<id>' for each reservation, '<batch> <tokens>'
-- KEYS[2]  sorted set: reservation id -> the microsecond at which its lease lapses
-- ARGV[1]  the caller's limits as packed below (lease and delay in microseconds)
-- ARGV[2]  a reservation's id; the script's own arguments follow
--
-- Units and formulas: pool.py. Every number is whole and below 2^53, which a double holds exactly;
-- packed doubles cost Redis half of what the same numbers cost as text.
local POOL = '<ddddddd'
local lease, delay, request, places_limit, batch_places_limit,
  size_1, rate_1, size_2, rate_2, size_3, rate_3, size_4, rate_4
  = struct.unpack('<ddddddddddddd', ARGV[1])
local size, rate = {size_1, size_2, size_3, size_4}, {rate_1, rate_2, rate_3, rate_4}
local id, id_record = ARGV[2], 'lease:' .. ARGV[2]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local found = redis.call('HMGET', KEYS[1], 'pool', 'opens', id_record)
local opens, record = found[2], found[3]
-- Levels of requests, tokens, requests of batch, tokens of batch; nil while the pool has no state.
local time, places, batch_places, level

local function write(...)
  redis.call('HSET', KEYS[1], 'pool',
    struct.pack(POOL, now, places, batch_places, level[1], level[2], level[3], level[4]), ...)
end

if found[1] then
  local level_1, level_2, level_3, level_4
  time, places, batch_places, level_1, level_2, level_3, level_4 = struct.unpack(POOL, found[1])
  level = {level_1, level_2, level_3, level_4}
  local elapsed = now - time
  if elapsed < 0 then
    -- The server's clock went back: everything dated moves with it, so that what was to come in
    -- three seconds still comes in three seconds, and nothing is refilled twice.
    opens = opens + elapsed
    write('opens', opens)
    for _, member in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
      redis.call('ZINCRBY', KEYS[2], elapsed, member)
    end
    elapsed = 0
  end
  for bucket = 1, 4 do
    level[bucket] = math.min(size[bucket], level[bucket] + elapsed * rate[bucket])
  end
end

-- A pool without state starts empty and closed: attempts that were admitted before the state was
-- lost still run, and have one renewal interval to register again.
local function create()
  places, batch_places, level, opens = 0, 0, {0, 0, 0, 0}, now + delay
  redis.call('DEL', KEYS[1], KEYS[2])
  write('opens', opens)
end
