-- Grants one attempt its request, its tokens and its place, or a start in the near future, or
-- changes nothing.
--
-- ARGV   2 reservation, 3 the longest that it may wait for its start, in microseconds: 0 if left out
-- Reply  GRANTED, or {code, microseconds until it may begin or can be granted, or -1 if that is not
--        known}
local GRANTED, REQUESTS, TOKENS, IN_FLIGHT, TOO_LARGE, COOLDOWN, WAITING = 0, 1, 2, 3, 4, 5, 6
local this, max_wait = ARGV[2], tonumber(ARGV[3] or 0)
local batch, tokens = struct.unpack(RESERVATION, this)
local cost = {request, tokens, request, tokens}
local last = batch == 1 and 4 or 2

for bucket = 1, last do
  if cost[bucket] > size[bucket] then return {TOO_LARGE, -1} end
end

if not level then create() end

local function decide()
  if now < cool_end then return COOLDOWN, cool_end - now end
  if places >= places_limit or batch == 1 and batch_places >= batch_places_limit then
    return IN_FLIGHT, -1
  end
  local code, wait = GRANTED, 0
  if now < opens then code, wait = REQUESTS, opens - now end
  for bucket = 1, last do
    if cost[bucket] > level[bucket] then
      local short = wait_for(cost[bucket] - level[bucket], rate[bucket])
      if short > wait then code, wait = bucket % 2 == 1 and REQUESTS or TOKENS, short end
    end
  end
  return code, wait
end

local code, wait = decide()
local lapsed
if code ~= GRANTED or waiting > 0 then
  -- A command that is repeated gets its first answer again.
  if (score(2, this) or 0) > now then return GRANTED end
  local start = waiting > 0 and score(3, this)
  if start and start + lease > now then return {WAITING, math.max(0, start - now)} end
  lapsed = find_lapsed()
  code, wait = decide()
end

local promised = wait > 0 and wait <= max_wait and batch == 0 and code <= TOKENS
if code ~= GRANTED and not promised then return {code, wait} end
if promised then
  forget(lapsed)
  redis.call('ZADD', KEYS[3], now + wait, this)
  waiting, code = waiting + 1, WAITING
elseif lapsed then
  forget(lapsed)
  redis.call('ZADD', KEYS[2], now + lease, this)
  places, batch_places = places + 1, batch_places + batch
else
  if redis.call('ZADD', KEYS[2], 'NX', now + lease, this) == 0 then
    if score(2, this) > now then return GRANTED end
    forget(find_lapsed())
    redis.call('ZADD', KEYS[2], now + lease, this)
  end
  places, batch_places = places + 1, batch_places + batch
end
for bucket = 1, last do
  level[bucket] = level[bucket] - cost[bucket]
end
write()
if code == GRANTED then return GRANTED end
return {code, wait}
