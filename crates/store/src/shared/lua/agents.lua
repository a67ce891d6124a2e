-- An agent: its calls in flight, and when all that is kept of it began.

local agent_key = P .. ':agent'

local function load_agent()
  local v = redis.call('HMGET', agent_key, 'r', 'due', 'born', 'n:' .. NODE)
  local agent = { r = count(v[1], agent_key), due = tonumber(v[2] or nil), born = v[3], own = count(v[4], agent_key) }
  lose(agent_key, agent, false)
  return agent
end

local function save_agent(agent)
  local fields = {}
  if agent.born then fields = { 'born', agent.born } end
  add_held(agent, fields)
  redis.call('HSET', agent_key, unpack(fields))
  redis.call('PEXPIRE', agent_key, RUN_TTL)
end
