"""Asks models with the clients of their providers, and prints what they return. The prompt is the first argument."""

import json
import sys

PROMPT = sys.argv[1]
MESSAGES = [{"role": "system", "content": "be short"}, {"role": "user", "content": PROMPT}]
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}


def openai_client():
    import openai

    client = openai.OpenAI(max_retries=0)
    chat = client.chat.completions
    print("chat", chat.create(model="m-1", messages=MESSAGES).choices[0].message.content)
    chunks = chat.create(model="m-1", messages=MESSAGES, stream=True)
    print("chat stream", [chunk.choices[0].delta.content for chunk in chunks])
    calls = chat.create(model="m-1", messages=MESSAGES, tools=[TOOL]).choices[0].message.tool_calls
    print("tool", [(call.function.name, call.function.arguments) for call in calls])
    print("response", client.responses.create(model="m-1", input=PROMPT).output_text)
    with client.responses.stream(model="m-1", input=PROMPT) as events:
        print("response stream", [event.delta for event in events if event.type == "response.output_text.delta"])
    print("embedding", client.embeddings.create(model="e-1", input=PROMPT, encoding_format="float").data[0].embedding)
    try:
        chat.create(model="m-1", messages=[{"role": "user", "content": "fail"}])
    except openai.RateLimitError as error:
        print("error", error.status_code, error.message)


def anthropic_client():
    import anthropic

    messages = anthropic.Anthropic(max_retries=0).messages
    asked = {"model": "c-1", "max_tokens": 9, "messages": [{"role": "user", "content": PROMPT}]}
    print("message", messages.create(**asked).content[0].text)
    with messages.stream(**asked) as stream:
        print("message stream", list(stream.text_stream))


def gemini_client():
    from google import genai

    client = genai.Client()
    print("content", client.models.generate_content(model="g-1", contents=PROMPT).text)
    parts = client.models.generate_content_stream(model="g-1", contents=PROMPT)
    print("content stream", [part.text for part in parts])


def litellm_client():
    import litellm

    for model in ("openai/m-2", "anthropic/c-2"):
        answer = litellm.completion(model=model, messages=MESSAGES, num_retries=0)
        print("litellm", answer.choices[0].message.content)
    parts = litellm.completion(model="openai/m-2", messages=MESSAGES, stream=True, num_retries=0)
    print("litellm stream", [part.choices[0].delta.content for part in parts])


def langchain_client():
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="m-3", max_retries=0)
    print("langchain", model.invoke(PROMPT).content)
    print("langchain stream", [part.content for part in model.stream(PROMPT)])



def azure_client():
    import openai

    client = openai.AzureOpenAI(api_key="not-a-key", api_version="1", max_retries=0)
    chat = client.chat.completions
    print("azure", chat.create(model="d-1", messages=MESSAGES).choices[0].message.content)
    chunks = chat.create(model="d-1", messages=MESSAGES, stream=True)
    print("azure stream", [chunk.choices[0].delta.content for chunk in chunks])


def messages_of(name, client):
    asked = {"model": "c-1", "max_tokens": 9, "messages": [{"role": "user", "content": PROMPT}]}
    print(name, client.messages.create(**asked).content[0].text)
    with client.messages.stream(**asked) as stream:
        print(name, "stream", list(stream.text_stream))


def anthropic_vertex_client():
    import anthropic

    place = {"region": "us-east5", "project_id": "p-1"}
    messages_of("vertex", anthropic.AnthropicVertex(**place, access_token="not-a-key", max_retries=0))


def anthropic_bedrock_client():
    import anthropic

    messages_of("bedrock", anthropic.AnthropicBedrock(aws_region="us-east-1", api_key="not-a-key", max_retries=0))
    # It signs requests with the key in the environment.
    messages_of("bedrock signed", anthropic.AnthropicBedrock(aws_region="us-east-1", max_retries=0))


def gemini_vertex_client():
    from google import genai
    from google.oauth2.credentials import Credentials

    place = {"project": "p-1", "location": "us-east5"}
    client = genai.Client(vertexai=True, credentials=Credentials("not-a-key"), **place)
    print("vertex content", client.models.generate_content(model="g-1", contents=PROMPT).text)
    parts = client.models.generate_content_stream(model="g-1", contents=PROMPT)
    print("vertex content stream", [part.text for part in parts])


def boto_client():
    import boto3
    from botocore.config import Config

    once = Config(retries={"total_max_attempts": 1})
    client = boto3.client("bedrock-runtime", region_name="us-east-1", config=once)
    asked = {"modelId": "a.b-v1:0", "messages": [{"role": "user", "content": [{"text": PROMPT}]}]}
    print("converse", client.converse(**asked)["output"]["message"]["content"])
    print("converse stream", list(client.converse_stream(**asked)["stream"]))
    body = json.dumps({"max_tokens": 9, "messages": [{"role": "user", "content": PROMPT}]})
    invoked = client.invoke_model_with_response_stream(modelId="a.b-v1:0", body=body)
    print("invoke stream", [event["chunk"]["bytes"] for event in invoked["body"]])


CLIENTS = {
    "openai": openai_client,
    "anthropic": anthropic_client,
    "google-genai": gemini_client,
    "litellm": litellm_client,
    "langchain-openai": langchain_client,
    "azure": azure_client,
    "anthropic-vertex": anthropic_vertex_client,
    "anthropic-bedrock": anthropic_bedrock_client,
    "google-genai-vertex": gemini_vertex_client,
    "boto3": boto_client,
}

for name in sys.argv[2:] or CLIENTS:
    CLIENTS[name]()
