"""A server with the form of the APIs of OpenAI, Anthropic, Gemini and Bedrock, for tests with their clients.

It listens at a free port of the loopback interface and prints it. The answers are made of the requests, so that a
changed request gets another answer.
"""

import base64
import hashlib
import json
import re
import struct
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


# What tools are called with.
CITY = {"city": "Paris"}

# The tools of agents that run a command, and how they are called with one.
SHELLS = {
    "Bash": lambda command: {"command": command, "description": "Writes a file"},
    "bash": lambda command: {"command": command, "description": "Writes a file"},
    "exec_command": lambda command: {"cmd": command},
    "run_commands": lambda command: {"commands": [command]},
    "run_shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": command},
    "shell_command": lambda command: {"command": command},
}


def call_of(names, body):
    """The tool that is called, and with what: a file that the prompt names is written."""
    file = re.search(r"to (/[\w./-]+/said[.]txt)", json.dumps(asked_of(body)))
    for name in names:
        if file and name in SHELLS:
            return name, SHELLS[name](f"echo hello | tee {file[1]}")
    return names[0], CITY


def asked_of(body):
    return body.get("messages") or body.get("input") or body.get("contents")


def value_of(schema):
    """A value of a JSON Schema."""
    if schema["type"].lower() == "object":
        return {name: value_of(member) for name, member in schema["properties"].items()}
    return {"string": "echo", "integer": 1, "number": 1, "boolean": True, "array": []}[schema["type"].lower()]


def words_of(body):
    return ["echo:", *json.dumps(asked_of(body))[-40:].split()]


def aws_event(name, document):
    """A message of an event stream of AWS."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    named = [(key.encode(), value.encode()) for key, value in headers.items()]
    head = b"".join(struct.pack(f">B{len(key)}sBH", len(key), key, 7, len(value)) + value for key, value in named)
    payload = json.dumps(document, separators=(",", ":")).encode()
    message = struct.pack(">II", len(head) + len(payload) + 16, len(head))
    message += struct.pack(">I", zlib.crc32(message)) + head + payload
    return message + struct.pack(">I", zlib.crc32(message))


def is_signed(request, body):
    """Whether a request has the signature that AWS computes of it with the key of the tests."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    form = r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d+/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)"
    key, region, service, names, signature = re.fullmatch(form, request.headers["authorization"]).groups()
    headers = {name: request.headers[name] for name in names.split(";")}
    url = f"http://{request.headers['host']}{request.path}"
    signed = AWSRequest(method=request.command, url=url, data=body, headers=headers)
    signed.context["timestamp"] = request.headers["x-amz-date"]
    auth = SigV4Auth(Credentials(key, "not-a-secret"), service, region)
    return auth.signature(auth.string_to_sign(signed, auth.canonical_request(signed)), signed) == signature


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        content = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("authorization", "").startswith("AWS4") and not is_signed(self, content):
            return self.whole(403, {"message": "The request signature we calculated does not match."})
        body = json.loads(content)
        path = self.path.split("?")[0]
        if "fail" in json.dumps(asked_of(body))[-100:]:
            return self.whole(429, {"error": {"message": "slow down", "type": "rate_limit_error"}})
        for ending, answer in ANSWERS.items():
            if path.endswith(ending):
                return answer(self, body)
        return self.whole(404, {"error": {"message": "no such path"}})

    def whole(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, events, content_type="text/event-stream; charset=utf-8"):
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            part = event if isinstance(event, bytes) else event.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def chat(self, body):
        usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
        common = {"id": "chat-1", "created": 1, "model": body["model"]}
        message = {"role": "assistant", "content": " ".join(words_of(body))}
        reason = "stop"
        if body.get("tools") and body["messages"][-1]["role"] != "tool":
            name, arguments = call_of([tool["function"]["name"] for tool in body["tools"]], body)
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"id": "call-1", "type": "function", "function": function}
            message, reason = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            return self.whole(200, {**common, "object": "chat.completion", "choices": [choice], "usage": usage})
        deltas = [{"role": "assistant", "content": word + " "} for word in words_of(body)]
        if "tool_calls" in message:
            deltas = [{"role": "assistant", "tool_calls": [{"index": 0, **message["tool_calls"][0]}]}]
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": reason})
        chunks = [{**common, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
        return self.stream([f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"])

    def respond(self, body):
        text = " ".join(words_of(body))
        content = {"type": "output_text", "text": text, "annotations": []}
        item = {"type": "message", "id": "msg-1", "role": "assistant", "status": "completed", "content": [content]}
        at = {"item_id": "msg-1", "output_index": 0}
        said = {**at, "content_index": 0, "logprobs": []}
        begun = {**item, "content": []}
        parts = [
            {"type": "response.content_part.added", **said, "part": {**content, "text": ""}},
            *[{"type": "response.output_text.delta", **said, "delta": word + " "} for word in words_of(body)],
            {"type": "response.output_text.done", **said, "text": text},
        ]
        tools = [tool["name"] for tool in body.get("tools", []) if tool.get("type") == "function"]
        if tools and "function_call_output" not in json.dumps(body["input"]):
            name, arguments = call_of(tools, body)
            arguments = json.dumps(arguments)
            call = {"type": "function_call", "id": "msg-1", "call_id": "call-1", "name": name}
            item, begun = {**call, "status": "completed", "arguments": arguments}, {**call, "arguments": ""}
            parts = [
                {"type": "response.function_call_arguments.delta", **at, "delta": arguments},
                {"type": "response.function_call_arguments.done", **at, "name": call["name"], "arguments": arguments},
            ]
        response = {
            "id": "resp-1", "object": "response", "created_at": 1, "status": "completed", "model": body["model"],
            "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None,
            "incomplete_details": None, "instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0,
        }
        if not body.get("stream"):
            return self.whole(200, response)
        events = [
            {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
            {"type": "response.output_item.added", "output_index": 0, "item": begun},
            *parts,
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": response},
        ]
        numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
        return self.stream([f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in numbered])

    def embeddings(self, body):
        data = [{"object": "embedding", "index": 0, "embedding": [0.5, 1.5]}]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return self.whole(200, {"object": "list", "model": body["model"], "data": data, "usage": usage})

    def messages(self, body):
        message, events = self.message(body)
        if not body.get("stream"):
            return self.whole(200, message)
        return self.stream([f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events])

    def message(self, body):
        """An answer of Anthropic, in one piece and in events."""
        # Programs take answers with one id for parts of one.
        number = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()[:16]
        message = {
            "id": f"msg-{number}", "type": "message", "role": "assistant", "model": body.get("model", "m"), "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        block, reason = {"type": "text", "text": " ".join(words_of(body))}, "end_turn"
        begun, deltas = {"type": "text", "text": ""}, [{"type": "text_delta", "text": word + " "} for word in words_of(body)]
        if body.get("tools") and '"tool_result"' not in json.dumps(body["messages"]):
            name, arguments = call_of([tool["name"] for tool in body["tools"]], body)
            begun = {"type": "tool_use", "id": "toolu-1", "name": name, "input": {}}
            block, reason = {**begun, "input": arguments}, "tool_use"
            # A path is split over two events.
            text = json.dumps(arguments)
            parts = [text[: len(text) // 2], text[len(text) // 2 :]]
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
        events = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": begun},
            *[{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas],
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": {"output_tokens": 2},
            },
            {"type": "message_stop"},
        ]
        return {**message, "content": [block], "stop_reason": reason}, events

    def aws_stream(self, events):
        return self.stream([aws_event(*event) for event in events], "application/vnd.amazon.eventstream")

    def invoke(self, body):
        return self.whole(200, self.message(body)[0])

    def invoke_stream(self, body):
        data = [json.dumps(event).encode() for event in self.message(body)[1]]
        return self.aws_stream([("chunk", {"bytes": base64.b64encode(one).decode(), "p": "abc"}) for one in data])

    def converse(self, body):
        message = {"role": "assistant", "content": [{"text": " ".join(words_of(body))}]}
        usage = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}
        answer = {"output": {"message": message}, "stopReason": "end_turn", "usage": usage}
        return self.whole(200, {**answer, "metrics": {"latencyMs": 1}})

    def converse_stream(self, body):
        usage = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}
        block = {"contentBlockIndex": 0}
        return self.aws_stream([
            ("messageStart", {"role": "assistant"}),
            *[("contentBlockDelta", {**block, "delta": {"text": word + " "}, "p": "abcd"}) for word in words_of(body)],
            ("contentBlockStop", block),
            ("messageStop", {"stopReason": "end_turn"}),
            ("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}),
        ])

    def generated(self, body, words):
        schema = body.get("generationConfig", {}).get("responseJsonSchema")
        # Gemini CLI asks five times, and waits longer each time, if an answer does not have the form that it wants.
        part = {"text": json.dumps(value_of(schema)) if schema else " ".join(words)}
        tools = body.get("tools", [])
        # goose sends one without a list.
        tools = tools if isinstance(tools, list) else [tools]
        functions = [one for tool in tools for one in tool.get("functionDeclarations", [])]
        if functions and "functionResponse" not in json.dumps(body["contents"]):
            name, arguments = call_of([function["name"] for function in functions], body)
            part = {"functionCall": {"name": name, "args": arguments}}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
        return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 2}}

    def generate(self, body):
        return self.whole(200, self.generated(body, words_of(body)))

    def generate_stream(self, body):
        parts = [self.generated(body, [word]) for word in words_of(body)]
        return self.stream([f"data: {json.dumps(part)}\r\n\r\n" for part in parts])


ANSWERS = {
    "/chat/completions": Handler.chat,
    "/responses": Handler.respond,
    "/embeddings": Handler.embeddings,
    "/messages": Handler.messages,
    ":rawPredict": Handler.messages,
    ":streamRawPredict": Handler.messages,
    "/converse": Handler.converse,
    "/converse-stream": Handler.converse_stream,
    "/invoke": Handler.invoke,
    "/invoke-with-response-stream": Handler.invoke_stream,
    ":generateContent": Handler.generate,
    ":streamGenerateContent": Handler.generate_stream,
}

if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
