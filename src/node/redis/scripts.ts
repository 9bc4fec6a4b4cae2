// Lua runs on the server as one step, so that no other client sees a session without its entry in the user's index.
// Numbers pass as text: Lua's own would lose digits beyond 14.

/** KEYS: session, index of the user. ARGV: session prefix, hash, ms to live, field, value … Tidies the index. */
export const INSERT = `
redis.call('HSET', KEYS[1], unpack(ARGV, 4))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
for _, hash in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  if redis.call('EXISTS', ARGV[1] .. hash) == 0 then redis.call('SREM', KEYS[2], hash) end
end
redis.call('SADD', KEYS[2], ARGV[2])
local left = redis.call('PTTL', KEYS[2])
if left < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end`

/** KEYS: session. ARGV: index prefix, last seen, expiry, ms to live. */
export const EXTEND = `
local user = redis.call('HGET', KEYS[1], 'userId')
if not user then return end
redis.call('HSET', KEYS[1], 'lastSeenAt', ARGV[2], 'expiresAt', ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
local index = ARGV[1] .. user
if redis.call('PTTL', index) < tonumber(ARGV[4]) then redis.call('PEXPIRE', index, ARGV[4]) end`

/** KEYS: session. ARGV: index prefix, hash. Returns the number of removed sessions. */
export const REMOVE = `
local user = redis.call('HGET', KEYS[1], 'userId')
if user then redis.call('SREM', ARGV[1] .. user, ARGV[2]) end
return redis.call('DEL', KEYS[1])`

/** KEYS: index of the user. ARGV: session prefix, hash to spare. Returns the number of removed sessions. */
export const REMOVE_FOR_USER = `
local removed = 0
for _, hash in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  if hash ~= ARGV[2] then
    removed = removed + redis.call('DEL', ARGV[1] .. hash)
    redis.call('SREM', KEYS[1], hash)
  end
end
return removed`

/** KEYS: index of the user. ARGV: session prefix. Returns the fields of each session, and tidies the index. */
export const LIST = `
local found = {}
for _, hash in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local fields = redis.call('HGETALL', ARGV[1] .. hash)
  if #fields == 0 then redis.call('SREM', KEYS[1], hash) else found[#found + 1] = fields end
end
return found`

/** KEYS: counter. ARGV: now, end of a new window, its ms. Returns the count and the end of the window. */
export const COUNT_ATTEMPT = `
local resetAt = redis.call('HGET', KEYS[1], 'resetAt')
if not resetAt or tonumber(resetAt) <= tonumber(ARGV[1]) or tonumber(resetAt) > ARGV[2] + ARGV[3] then
  redis.call('HSET', KEYS[1], 'count', 1, 'resetAt', ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return {1, tonumber(ARGV[2])}
end
return {redis.call('HINCRBY', KEYS[1], 'count', 1), tonumber(resetAt)}`

/** KEYS: counter. ARGV: all or one. */
export const FORGIVE_ATTEMPT = `
if ARGV[1] == 'all' then return redis.call('DEL', KEYS[1]) end
if tonumber(redis.call('HGET', KEYS[1], 'count') or '0') > 0 then redis.call('HINCRBY', KEYS[1], 'count', -1) end`

/**
 * KEYS: bucket, which stores when it is full again. ARGV: now, size, interval of one place, both times in ms. Returns
 * the ms to wait. The clocks of instances may differ by a minute; a time further ahead was stored before a clock was
 * corrected.
 */
export const TAKE_PLACE = `
local now, most, every = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local known = tonumber(redis.call('GET', KEYS[1]) or '0')
local from = math.min(math.max(known, now), now + most * every)
local wait = from + every - (now + most * every)
local function keep(full) redis.call('SET', KEYS[1], string.format('%.3f', full), 'PX', math.ceil(full - now) + 60000) end
if wait > 0 then
  if known - from > 60000 then keep(from) end
  return math.ceil(wait)
end
keep(from + every)
return 0`

/** KEYS: bucket. ARGV: ms for each place. */
export const GIVE_PLACE_BACK = `
local full = redis.call('GET', KEYS[1])
if full then redis.call('SET', KEYS[1], string.format('%.3f', tonumber(full) - tonumber(ARGV[1])), 'KEEPTTL') end`

/** ARGV: pattern of counters to delete. */
export const CLEAR_ATTEMPTS = `
local cursor = '0'
repeat
  local page = redis.call('SCAN', cursor, 'MATCH', ARGV[1], 'COUNT', 1000)
  cursor = page[1]
  for _, key in ipairs(page[2]) do redis.call('DEL', key) end
until cursor == '0'`
