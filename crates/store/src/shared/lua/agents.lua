-- An agent: its calls in flight, and when all that is kept of it began.

local agent_key = P .. ':agent'
local AGENT = '<c2ddI2c0I2c0'

local function load_agent(key)
  if not is_there(key) then return { key = key, r = 0, due = 0, n = '', more = '' } end
  local value = value_at(key)
  local is_read, mark, r, due, born, n, next = pcall(struct.unpack, AGENT, value)
  if not is_read or mark ~= 'a1' then broken(key) end
  local agent = { key = key, r = r, due = due, born = born, n = n, more = string.sub(value, next) }
  lose(agent)
  return agent
end

local function save_agent(agent)
  local value = struct.pack(AGENT, 'a1', agent.r, agent.due, #agent.born, agent.born, #agent.n, agent.n)
  put(agent.key, value .. agent.more, 'PX', RUN_TTL)
end
