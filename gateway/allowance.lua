-- Charges one request to every bucket, or to none.
--
-- KEYS   a bucket each: the microsecond of its last change and its level then, two packed doubles;
--        absent while it is full
-- ARGV   1 units of a request, then size and rate of each bucket in units and units a microsecond
-- Reply  {number of the bucket that refuses or 0, microseconds until all of them can grant it,
--         level of each bucket after the decision}
--
-- Every number is whole and below 2^53, which a double holds exactly.
local STATE = '<dd'
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local cost = tonumber(ARGV[1])
local levels, refuses, wait = {}, 0, 0

local function keep(bucket, level)
  local size, rate = tonumber(ARGV[2 * bucket]), tonumber(ARGV[2 * bucket + 1])
  local full_in = math.ceil((size - level) / rate / 1000) + 1
  redis.call('SET', KEYS[bucket], struct.pack(STATE, now, level), 'PX', full_in)
end

for bucket, key in ipairs(KEYS) do
  local size, rate = tonumber(ARGV[2 * bucket]), tonumber(ARGV[2 * bucket + 1])
  local level, state = size, redis.call('GET', key)
  if state then
    local time, left = struct.unpack(STATE, state)
    level = math.min(size, left + math.max(0, now - time) * rate)
    -- The server's clock went back: what was to come in three seconds still comes in three seconds.
    if now < time then keep(bucket, level) end
  end
  levels[bucket] = level
  local short = math.ceil((cost - level) / rate)
  if short > wait then refuses, wait = bucket, short end
end

if refuses == 0 then
  for bucket = 1, #KEYS do
    levels[bucket] = levels[bucket] - cost
    keep(bucket, levels[bucket])
  end
end
return {refuses, wait, unpack(levels)}
