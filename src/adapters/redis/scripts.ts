/**
 * Stores a pointer where its epoch is higher than the stored one and its term not lower, and hints the watchers.
 * KEYS pointer · ARGV epoch, term, pointer as JSON, channel · answers nil where applied, else the stored pointer.
 */
export const WRITE_POINTER = `
local current = redis.call('HMGET', KEYS[1], 'epoch', 'term', 'pointer')
if current[1] and (tonumber(ARGV[1]) <= tonumber(current[1]) or tonumber(ARGV[2]) < tonumber(current[2])) then
  return current[3]
end
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'term', ARGV[2], 'pointer', ARGV[3])
redis.call('PUBLISH', ARGV[4], ARGV[1])
return nil`;

/** Takes or renews a lease, unless another holds it. KEYS lease · ARGV holder, ttl in ms · answers 1 or 0. */
export const HOLD_LEASE = `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`;

/** Gives a lease back, where it is still held. KEYS lease · ARGV holder. */
export const RELEASE_LEASE = `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1`;

const NOW_MS = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/**
 * Keeps a member's report until its time is up, beside those of the others. The hash lives as long as its longest-lived report.
 * KEYS reports · ARGV member, ttl in ms, text.
 */
export const WRITE_REPORT = `${NOW_MS}
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now + ARGV[2]) .. ' ' .. ARGV[3])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1`;

/** Reports whose time is not up, as member, text, member, text, …; the others are removed. KEYS reports. */
export const READ_REPORTS = `${NOW_MS}
local live = {}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local space = string.find(all[i + 1], ' ', 1, true)
  if tonumber(string.sub(all[i + 1], 1, space - 1)) > now then
    live[#live + 1] = all[i]
    live[#live + 1] = string.sub(all[i + 1], space + 1)
  else
    redis.call('HDEL', KEYS[1], all[i])
  end
end
return live`;
