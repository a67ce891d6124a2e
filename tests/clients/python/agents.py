"""Agents upon every SDK: each calls the model, runs the tool that it asks for, and ends when it asks for none.

Nothing is changed but the base URL: the SDKs keep their own retries. Each gives the last words of the model.
"""

import json

import anthropic
import openai
from google import genai
from google.genai import errors, types
from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent

import servers

FAILURE = "Error: ENOENT: no such file or directory, open 'notes.txt'"
PARAMETERS = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
CALL_FIELDS = {"type", "id", "name", "input"}
MANY = range(40)


def look_up(key: str) -> str:
    """Looks something up."""
    return FAILURE


def openai_chat(url: str, stream: bool, prompt: str) -> str:
    messages = [{"role": "user", "content": prompt}]
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": PARAMETERS}}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="sk-test") as client:
        for _ in MANY:
            request = {"model": servers.model("gpt-4o"), "messages": messages, "tools": tools}
            if stream:
                with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as events:
                    completion = events.get_final_completion()
            else:
                completion = client.chat.completions.create(**request)
            message = completion.choices[0].message
            if not message.tool_calls:
                assert completion.choices[0].finish_reason == "stop"
                assert (completion.model, completion.usage.total_tokens) == ("sprag-policy", 0)
                return message.content
            messages.append(json.loads(message.model_dump_json(include={"role", "content", "tool_calls"})))
            results = [{"role": "tool", "tool_call_id": call.id, "content": FAILURE} for call in message.tool_calls]
            messages.extend(results)
    raise AssertionError("nobody stopped it")


def openai_responses(url: str, stream: bool, prompt: str) -> str:
    items = [{"role": "user", "content": prompt}]
    tools = [{"type": "function", "name": "look_up", "parameters": PARAMETERS, "strict": False}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key="sk-test") as client:
        for _ in MANY:
            request = {"model": servers.model("gpt-4o"), "input": items, "tools": tools}
            if stream:
                with client.responses.stream(**request) as events:
                    response = events.get_final_response()
            else:
                response = client.responses.create(**request)
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                assert (response.status, response.model, response.usage.total_tokens) == ("completed", "sprag-policy", 0)
                return response.output_text
            for call in calls:
                items.append(json.loads(call.model_dump_json(include={"type", "call_id", "name", "arguments"})))
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": FAILURE})
    raise AssertionError("nobody stopped it")


def anthropic_messages(url: str, stream: bool, prompt: str) -> str:
    messages = [{"role": "user", "content": prompt}]
    tools = [{"name": "look_up", "input_schema": PARAMETERS}]
    with anthropic.Anthropic(base_url=url, api_key="sk-ant-test") as client:
        for _ in MANY:
            model = servers.model("claude-sonnet-5")
            request = {"model": model, "max_tokens": 100, "messages": messages, "tools": tools}
            if stream:
                with client.messages.stream(**request) as events:
                    message = events.get_final_message()
            else:
                message = client.messages.create(**request)
            calls = [block for block in message.content if block.type == "tool_use"]
            if not calls:
                assert (message.stop_reason, message.model) == ("end_turn", "sprag-policy")
                assert (message.usage.input_tokens, message.usage.output_tokens) == (0, 0)
                return message.content[0].text
            messages.append({"role": "assistant", "content": [call.model_dump(include=CALL_FIELDS) for call in calls]})
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": FAILURE, "is_error": True} for call in calls
            ]
            messages.append({"role": "user", "content": results})
    raise AssertionError("nobody stopped it")


def anthropic_tool_runner(url: str, stream: bool, prompt: str) -> str:
    """Its requests repeat nothing: only the id of the last answer ties one to its run."""
    return run_tools(url, stream, prompt, {})


def anthropic_tool_runner_without_threads(url: str, stream: bool, prompt: str) -> str:
    return run_tools(url, stream, prompt, {"thread": False})


def run_tools(url: str, stream: bool, prompt: str, options: dict) -> str:
    request = {"model": servers.model("claude-sonnet-5"), "max_tokens": 100, "max_iterations": len(MANY)}
    messages = [{"role": "user", "content": prompt}]
    with anthropic.Anthropic(base_url=url, api_key="sk-ant-test") as client:
        tools = [anthropic.beta_tool(look_up)]
        runner = client.beta.messages.tool_runner(**request, messages=messages, tools=tools, stream=stream, **options)
        final = [step.get_final_message() if stream else step for step in runner][-1]
        assert (final.stop_reason, final.model) == ("end_turn", "sprag-policy")
        return final.content[0].text


def google_genai(url: str, stream: bool, prompt: str) -> str:
    limit = types.AutomaticFunctionCallingConfig(maximum_remote_calls=len(MANY))
    config = types.GenerateContentConfig(tools=[look_up], automatic_function_calling=limit)
    request = {"model": servers.model("gemini-2.5-flash"), "contents": prompt, "config": config}
    with genai.Client(api_key="test", http_options={"base_url": url}) as client:
        if stream:
            return "".join(chunk.text or "" for chunk in client.models.generate_content_stream(**request))
        answer = client.models.generate_content(**request)
        assert answer.candidates[0].finish_reason == types.FinishReason.STOP
        return answer.text


def langgraph(url: str, stream: bool, prompt: str) -> str:
    model = ChatOpenAI(model=servers.model("gpt-4o"), base_url=f"{url}/v1", api_key="sk-test", streaming=stream)
    agent = create_react_agent(model, [look_up])
    state = agent.invoke({"messages": [("user", prompt)]}, {"recursion_limit": 2 * len(MANY)})
    return state["messages"][-1].text


# What each raises when it is stopped.
RAISED = {
    openai_chat: openai.APIStatusError,
    openai_responses: openai.APIStatusError,
    anthropic_messages: anthropic.APIStatusError,
    anthropic_tool_runner: anthropic.APIStatusError,
    anthropic_tool_runner_without_threads: anthropic.APIStatusError,
    google_genai: errors.ClientError,
    langgraph: openai.APIStatusError,
}
