-- Starts a waiting reservation whose time has come: it takes its place in flight, or gives back
-- what it was charged.
--
-- ARGV   2 reservation
-- Reply  as of reserve, and LOST if no such reservation waits
local GRANTED, IN_FLIGHT, COOLDOWN, WAITING, LOST = 0, 3, 5, 6, 7
local this = ARGV[2]
local batch = struct.unpack(RESERVATION, this)

if not level then return {LOST, -1} end
if (score(2, this) or 0) > now then return GRANTED end
local start = score(3, this)
if not start or start + lease <= now then
  -- A cooldown gives back whatever waits.
  if now < ramp_end then return {COOLDOWN, math.max(0, cool_end - now)} end
  return {LOST, -1}
end
if now < start then return {WAITING, start - now} end

-- Attempts may have used more than they asked for since this was promised. What is missing after
-- all that was promised up to this one is paid back first.
local wait, owed = 0, {level[1], level[2]}
for _, later in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. start, '+inf')) do
  local _, tokens = struct.unpack(RESERVATION, later)
  owed[1], owed[2] = owed[1] + request, owed[2] + tokens
end
for bucket = 1, 2 do
  if owed[bucket] < 0 then wait = math.max(wait, wait_for(-owed[bucket], rate[bucket])) end
end
if wait > 0 then return {WAITING, wait} end

if places >= places_limit then forget(find_lapsed()) end
redis.call('ZREM', KEYS[3], this)
waiting = waiting - 1
if places >= places_limit then
  give_back_all(this)
  write()
  return {IN_FLIGHT, -1}
end
redis.call('ZADD', KEYS[2], now + lease, this)
places, batch_places = places + 1, batch_places + batch
write()
return GRANTED
