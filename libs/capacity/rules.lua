-- Stands between the plain cases and the rest of a script: the pool's state at this moment, and what
-- changes it.
local size, rate = {size_1, size_2, size_3, size_4}, {rate_1, rate_2, rate_3, rate_4}
-- nil while the pool has no state
local level

local function write()
  redis.call('SET', KEYS[1], struct.pack(POOL, now, places, batch_places, waiting, opens,
    cool_end, ramp_end, level[1], level[2], level[3], level[4]))
end

-- What a bucket has gained `after` microseconds from the start of a ramp, until the ramp is over.
-- Rounding can only make it less, and a sum of steps is what one step would be.
local function climbed(speed, after)
  local length = ramp_end - cool_end
  local inside = math.max(0, math.min(after, length))
  return math.floor(speed * inside * inside / (2 * length) * (1 - 2^-50))
end

local function gained(speed, from, to)
  if from >= ramp_end then return speed * (to - from) end
  local ramped = climbed(speed, to - cool_end) - climbed(speed, from - cool_end)
  local longest = math.min(to, ramp_end) - math.max(from, cool_end)
  return math.min(ramped, speed * math.max(0, longest)) + speed * math.max(0, to - ramp_end)
end

-- Microseconds until a bucket has gained `units` more.
local function wait_for(units, speed)
  if now >= ramp_end then return math.ceil(units / speed) end
  local rest = units - gained(speed, now, ramp_end)
  if rest >= 0 then return ramp_end - now + math.ceil(rest / speed) end
  local already = climbed(speed, now - cool_end)
  local square = 2 * (ramp_end - cool_end) * (units + already) / speed
  local to = math.max(now + 1, cool_end + math.ceil(math.sqrt(square)))
  while to > now + 1 and gained(speed, now, to - 1) >= units do to = to - 1 end
  while gained(speed, now, to) < units do to = to + 1 end
  return to - now
end

-- Until a ramp is over, what is returned only pays debts: it was taken before, and must not start
-- a burst now.
local function give_back(bucket, units)
  local most = size[bucket]
  if now < ramp_end and units > 0 then most = math.max(level[bucket], 0) end
  level[bucket] = math.min(most, level[bucket] + units)
end

local function give_back_all(reservation)
  local batch, tokens = struct.unpack(RESERVATION, reservation)
  local cost = {request, tokens, request, tokens}
  for bucket = 1, batch == 1 and 4 or 2 do give_back(bucket, cost[bucket]) end
end

if state then
  level = {level_1, level_2, level_3, level_4}
  local elapsed = now - time
  if elapsed < 0 then
    -- The server's clock went back: everything dated moves with it, so that what was to come in
    -- three seconds still comes in three seconds, and nothing is refilled twice.
    opens, cool_end, ramp_end = opens + elapsed, cool_end + elapsed, ramp_end + elapsed
    write()
    for set = 2, 3 do
      for _, member in ipairs(redis.call('ZRANGE', KEYS[set], 0, -1)) do
        redis.call('ZINCRBY', KEYS[set], elapsed, member)
      end
    end
    time, elapsed = now, 0
  end
  if time >= ramp_end then
    for bucket = 1, 4 do
      level[bucket] = math.min(size[bucket], level[bucket] + elapsed * rate[bucket])
    end
  else
    for bucket = 1, 4 do
      level[bucket] = math.min(size[bucket], level[bucket] + gained(rate[bucket], time, now))
    end
  end
end

-- A pool without state starts empty and closed: attempts that were admitted before the state was
-- lost still run, and have one renewal interval to register again.
local function create()
  places, batch_places, waiting, level = 0, 0, 0, {0, 0, 0, 0}
  opens, cool_end, ramp_end = now + delay, 0, 0
  redis.call('DEL', KEYS[2], KEYS[3])
  write()
end

-- Reservations of processes that died, counted out of the numbers above. The sets still hold them:
-- a script that goes on to write removes them with `forget`.
local function find_lapsed()
  local lapsed = {running = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now), waiting = {}}
  for _, gone in ipairs(lapsed.running) do
    places, batch_places = places - 1, batch_places - struct.unpack(RESERVATION, gone)
  end
  if waiting > 0 then
    lapsed.waiting = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now - lease)
    for _, gone in ipairs(lapsed.waiting) do
      waiting = waiting - 1
      give_back_all(gone)
    end
  end
  return lapsed
end

local function forget(lapsed)
  for _, gone in ipairs(lapsed.running) do redis.call('ZREM', KEYS[2], gone) end
  for _, gone in ipairs(lapsed.waiting) do redis.call('ZREM', KEYS[3], gone) end
end

local function score(set, member)
  return tonumber(redis.call('ZSCORE', KEYS[set], member) or nil)
end
