-- Nearly every time, the pool is open, nobody waits, nothing is ramped and there is room. Whatever
-- is not granted here is decided by the rules that follow.
if state and waiting == 0 and now >= time and time >= ramp_end and now >= opens
  and places < places_limit then
  local batch, tokens = struct.unpack(RESERVATION, ARGV[2])
  local elapsed, min = now - time, math.min
  local requests_left = min(size_1, level_1 + elapsed * rate_1) - request
  local tokens_left = min(size_2, level_2 + elapsed * rate_2) - tokens
  local batch_requests_left = min(size_3, level_3 + elapsed * rate_3) - batch * request
  local batch_tokens_left = min(size_4, level_4 + elapsed * rate_4) - batch * tokens
  local has_room = requests_left >= 0 and tokens_left >= 0
  if batch == 1 then
    has_room = has_room and batch_places < batch_places_limit
      and batch_requests_left >= 0 and batch_tokens_left >= 0
  end
  if has_room and redis.call('ZADD', KEYS[2], 'NX', now + lease, ARGV[2]) == 1 then
    redis.call('SET', KEYS[1], struct.pack(POOL, now, places + 1, batch_places + batch, 0, opens,
      cool_end, ramp_end, requests_left, tokens_left, batch_requests_left, batch_tokens_left))
    return 0
  end
end
