"""An agent with a tool, in the way of each client of model providers. It prints what it saw, in order, as lines of JSON.

The name of the client is the first argument, the prompt the second.
"""

import json
import sys

CLIENT, PROMPT = sys.argv[1:]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def saw(**what):
    print(json.dumps(what))


def weather(city: str) -> str:
    """Returns the weather in a city."""
    saw(call="weather", arguments={"city": city})
    result = f"18 degrees in {city}"
    saw(result=result)
    return result


def function():
    return {"name": "weather", "description": weather.__doc__, "parameters": PARAMETERS}


def chat(complete):
    """The loop of the chat API of OpenAI; `complete` returns a message."""
    messages = [{"role": "user", "content": PROMPT}]
    while True:
        message = complete(messages=messages, tools=[{"type": "function", "function": function()}])
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls or []:
            result = weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        if not message.tool_calls:
            return saw(text=message.content)


def openai_chat():
    import openai

    completions = openai.OpenAI(max_retries=0).chat.completions

    def complete(**asked):
        with completions.stream(model="m-1", **asked) as stream:
            return stream.get_final_completion().choices[0].message

    chat(complete)


def openai_responses():
    import openai

    responses = openai.OpenAI(max_retries=0).responses
    given = [{"role": "user", "content": PROMPT}]
    while True:
        tool = {"type": "function", "strict": False, **function()}
        with responses.stream(model="m-1", input=given, tools=[tool]) as stream:
            answer = stream.get_final_response()
        calls = [item for item in answer.output if item.type == "function_call"]
        given += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
        for call in calls:
            result = weather(**json.loads(call.arguments))
            given.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
        if not calls:
            return saw(text=answer.output_text)


def anthropic():
    import anthropic

    client = anthropic.Anthropic(max_retries=0)
    tool = {"name": "weather", "description": weather.__doc__, "input_schema": PARAMETERS}
    messages = [{"role": "user", "content": PROMPT}]
    while True:
        with client.messages.stream(model="c-1", max_tokens=99, messages=messages, tools=[tool]) as stream:
            answer = stream.get_final_message()
        blocks = [block.model_dump(exclude_none=True) for block in answer.content]
        messages.append({"role": "assistant", "content": blocks})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": weather(**block.input)}
            for block in answer.content
            if block.type == "tool_use"
        ]
        if not results:
            return saw(text="".join(block.text for block in answer.content))
        messages.append({"role": "user", "content": results})


def gemini():
    from google import genai

    config = genai.types.GenerateContentConfig(tools=[weather])
    client = genai.Client()
    saw(text=client.models.generate_content(model="g-1", contents=PROMPT, config=config).text)


def litellm():
    import litellm

    litellm.suppress_debug_info = True
    chat(lambda **asked: litellm.completion(model="anthropic/c-2", num_retries=0, **asked).choices[0].message)


def langchain():
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="m-3", max_retries=0).bind_tools([tool(weather)])
    messages = [HumanMessage(PROMPT)]
    while True:
        answer = model.invoke(messages)
        messages.append(answer)
        for call in answer.tool_calls:
            messages.append(ToolMessage(weather(**call["args"]), tool_call_id=call["id"]))
        if not answer.tool_calls:
            return saw(text=answer.content)


saw(asked=PROMPT)
{
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "google-genai": gemini,
    "litellm": litellm,
    "langchain-openai": langchain,
}[CLIENT]()
