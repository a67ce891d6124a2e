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
  if signs[NODE] and now - signs[NODE] >= QUIET then held.own = 0 end
  redis.call('HSET', key, 'r', int(held.r))
  if due then redis.call('HSET', key, 'due', int(due)) else redis.call('HDEL', key, 'due') end
  return lost
end

-- Holds more. What is to be written for that stands in `held` until `add_held`.
local function hold(held, amount)
  held.r = held.r + amount
  held.own = held.own + amount
  held.due = held.due or now + QUIET
  held.is_held = true
end

-- Gives back as much as this node still holds, and says how much that was.
local function release(key, held, amount)
  local given = math.min(held.own, amount)
  held.r = math.max(0, held.r - given)
  held.own = held.own - given
  held.is_held = held.own > 0
  if not held.is_held then redis.call('HDEL', key, 'n:' .. NODE, 't:' .. NODE) end
  return given
end

-- Adds what is held to the fields that are written.
local function add_held(held, fields)
  local at = #fields
  fields[at + 1], fields[at + 2] = 'r', int(held.r)
  if held.is_held then
    fields[at + 3], fields[at + 4] = 'n:' .. NODE, int(held.own)
    fields[at + 5], fields[at + 6] = 't:' .. NODE, int(now)
    fields[at + 7], fields[at + 8] = 'due', int(held.due or now + QUIET)
  end
end
