"""An agent upon OpenAI's SDK as people write it: it names no base URL. Its argument is the task."""

import json
import sys

import openai

PARAMETERS = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": PARAMETERS}}]


def main(task: str) -> None:
    client = openai.OpenAI()
    messages = [{"role": "user", "content": task}]
    for step in range(1, 100):
        message = client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS).choices[0].message
        if not message.tool_calls:
            print(message.content)
            return
        messages.append(json.loads(message.model_dump_json(include={"role", "content", "tool_calls"})))
        for call in message.tool_calls:
            key = json.loads(call.function.arguments)["key"]
            result = "Error: no such file" if key == "notes.txt" else f"{key} says something new: {step * 7919}"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


main(sys.argv[1])
