"""A small agent on OpenAI's chat API, with nothing but Python: it finds its provider as the SDKs do.

    agent.py steps N            a conversation of N tool calls, each with something new
    agent.py stuck              one tool call for ever, until it is refused
    agent.py stubborn           the same, and a refusal changes nothing
    agent.py talks N            N conversations of one question each
    agent.py ask TEXT           one question
"""

import json
import os
import sys
import urllib.error
import urllib.request

TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]


def ask(messages, **headers):
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    body = json.dumps({"model": "gpt-4o", "messages": messages, "tools": TOOLS}).encode()
    headers |= {"content-type": "application/json", "authorization": "Bearer sk-test"}
    request = urllib.request.Request(url, body, headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]


def work(messages, result):
    """One conversation, until the model asks for no tool."""
    step = 0
    while True:
        message = ask(messages)
        calls = message.get("tool_calls") or []
        if not calls:
            return message["content"]
        messages.append({"role": "assistant", "content": message.get("content"), "tool_calls": calls})
        step += 1
        messages.extend({"role": "tool", "tool_call_id": call["id"], "content": result(step)} for call in calls)


def user(text):
    return [{"role": "user", "content": text}]


def main(mode, value=""):
    if mode == "steps":
        directive = f'[[mock:agent steps={value} tool=look_up args={{"key":"part $N"}}]]'
        print(work(user(f"Read all parts. {directive}"), lambda step: f"this is what part {step} says"))
    elif mode in ("stuck", "stubborn"):
        messages = user('Read the notes. [[mock:stuck tool=look_up args={"key":"notes.txt"}]]')
        while True:
            try:
                work(messages, lambda _: "Error: ENOENT: no such file or directory, open 'notes.txt'")
            except urllib.error.HTTPError as refused:
                print(refused.read().decode(), flush=True)
                if mode == "stuck":
                    sys.exit(1)
    elif mode == "talks":
        for number in range(int(value)):
            ask(user(f"Question {number} of many. [[mock:usage input=1000 output=1000]]"))
            print(f"answer {number}", flush=True)
    else:
        print(ask(user(value))["content"], flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
