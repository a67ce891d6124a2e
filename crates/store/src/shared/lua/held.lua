-- What nodes hold of something: the sum in r, by node in n:NODE, the node's last sign of life in t:NODE. `due` is when
-- a node may have been quiet for too long, so that nobody looks before. What is booked for a lost node is in k:NODE.

local QUIET = 60000

-- Lets go of what lost nodes held, and gives how much that was.
local function lose(key, held, is_booked)
  if not held.due or now < held.due then return 0 end
  local all = redis.call('HGETALL', key)
  local amounts, signs = {}, {}
  for at = 1, #all, 2 do
    local kind, node = string.match(all[at], '^([nt]):(.*)$')
    if kind == 'n' then amounts[node] = number(all[at + 1], key) end
    if kind == 't' then signs[node] = number(all[at + 1], key) end
  end
  local lost, due = 0, nil
  for node, sign in pairs(signs) do
    if now - sign >= QUIET then
      local amount = amounts[node] or 0
      lost = lost + amount
      redis.call('HDEL', key, 'n:' .. node, 't:' .. node)
      if is_booked and amount > 0 then redis.call('HINCRBY', key, 'k:' .. node, int(amount)) end
    elseif not due or sign + QUIET < due then
      due = sign + QUIET
    end
  end
  held.r = math.max(0, held.r - lost)
  held.due = due
  redis.call('HSET', key, 'r', int(held.r))
  if due then redis.call('HSET', key, 'due', int(due)) else redis.call('HDEL', key, 'due') end
  return lost
end

local function hold(key, held, amount)
  held.r = held.r + amount
  if not held.due then held.due = now + QUIET end
  redis.call('HINCRBY', key, 'n:' .. NODE, int(amount))
  redis.call('HSET', key, 't:' .. NODE, int(now), 'r', int(held.r), 'due', int(held.due))
end

-- Gives back as much as this node still holds, and says how much that was.
local function release(key, held, amount)
  local own = count(redis.call('HGET', key, 'n:' .. NODE), key)
  local given = math.min(own, amount)
  held.r = math.max(0, held.r - given)
  redis.call('HSET', key, 'r', int(held.r))
  if own - given > 0 then
    redis.call('HSET', key, 'n:' .. NODE, int(own - given), 't:' .. NODE, int(now))
  else
    redis.call('HDEL', key, 'n:' .. NODE, 't:' .. NODE)
  end
  return given
end
