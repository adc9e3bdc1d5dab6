//! The sorts of spans that are not calls of a model.

use super::{OtelSpan, RAW_REQUEST};

/// A sort of spans that are not calls of a model.
struct OtherSpan {
    /// The attribute that says so, with one of these values, or any.
    attribute: &'static str,
    values: &'static [&'static str],
    what: &'static str,
    /// The attributes with its name, of which those that it has are said.
    names: &'static [&'static str],
    /// Whether calls of models are expected inside it.
    has_calls: bool,
}

const TOOL: &str = "it runs a tool, whose result is in the next request to the model";
const AGENT: &str = "it runs an agent";
const WORKFLOW: &str = "it runs a workflow";
const RETRIEVAL: &str = "it looks up documents";
const MEMORY: &str = "it reads or changes a memory";

const OPERATION: &str = "gen_ai.operation.name";

/// Stands for the name of a span in the place of an attribute.
const NAME: &str = "the name";

/// Their sorts, the first of which counts: those of the conventions for generative AI and MCP of OpenTelemetry, of
/// `OpenInference`, of `OpenLLMetry`, of `LiteLLM`, and of the AI SDK of Vercel.
const OTHERS: &[OtherSpan] = &[
    leaf(OPERATION, &["execute_tool"], TOOL, &["gen_ai.tool.name"]),
    around(OPERATION, &["invoke_agent"], AGENT, &["gen_ai.agent.name"]),
    around(OPERATION, &["invoke_workflow"], WORKFLOW, &["gen_ai.agent.name", "gen_ai.workflow.name"]),
    around(OPERATION, &["plan"], "it makes the plan of an agent", &["gen_ai.agent.name"]),
    leaf(OPERATION, &["create_agent"], "it creates an agent", &["gen_ai.agent.name"]),
    leaf(OPERATION, &["retrieval"], RETRIEVAL, &["gen_ai.data_source.id"]),
    leaf(
        OPERATION,
        &[
            "create_memory",
            "create_memory_store",
            "delete_memory",
            "delete_memory_store",
            "search_memory",
            "update_memory",
            "upsert_memory",
        ],
        MEMORY,
        &["gen_ai.memory.store.name"],
    ),
    leaf("mcp.method.name", &["tools/call"], TOOL, &["gen_ai.tool.name", "mcp.tool.name"]),
    leaf(
        "mcp.method.name",
        &[],
        "it is a request or a notification of MCP",
        &["mcp.method.name", "gen_ai.prompt.name"],
    ),
    leaf("openinference.span.kind", &["TOOL"], TOOL, &["tool.name"]),
    around("openinference.span.kind", &["AGENT"], AGENT, &["agent.name"]),
    around("openinference.span.kind", &["CHAIN"], "it is a step of a program", &[]),
    leaf("openinference.span.kind", &["RETRIEVER", "RERANKER"], RETRIEVAL, &[]),
    leaf("openinference.span.kind", &["GUARDRAIL", "EVALUATOR"], "it judges what a model said", &[]),
    leaf("openinference.span.kind", &["PROMPT"], "it makes a prompt", &[]),
    leaf("traceloop.span.kind", &["tool"], TOOL, &["traceloop.entity.name"]),
    around("traceloop.span.kind", &["agent"], AGENT, &["traceloop.entity.name"]),
    around("traceloop.span.kind", &["workflow", "task"], WORKFLOW, &["traceloop.entity.name"]),
    leaf(NAME, &[RAW_REQUEST], "it repeats the request of the span that it is inside of", &[]),
    leaf("ai.operationId", &["ai.rerank.doRerank"], RETRIEVAL, &[]),
    leaf("ai.operationId", &["ai.toolCall"], TOOL, &["ai.toolCall.name"]),
    around(
        "ai.operationId",
        &[
            "ai.generateText",
            "ai.streamText",
            "ai.generateObject",
            "ai.streamObject",
            "ai.embed",
            "ai.embedMany",
            "ai.rerank",
        ],
        "it is a function of the AI SDK",
        &["ai.operationId"],
    ),
];

const fn leaf(
    attribute: &'static str,
    values: &'static [&'static str],
    what: &'static str,
    names: &'static [&'static str],
) -> OtherSpan {
    OtherSpan { attribute, values, what, names, has_calls: false }
}

const fn around(
    attribute: &'static str,
    values: &'static [&'static str],
    what: &'static str,
    names: &'static [&'static str],
) -> OtherSpan {
    OtherSpan { has_calls: true, ..leaf(attribute, values, what, names) }
}

impl OtelSpan {
    /// Returns why it is not a call of a model, if it says that it is something else.
    pub(super) fn why_other(&self) -> Option<String> {
        let is = |other: &&OtherSpan| {
            let stated = if other.attribute == NAME { Some(&*self.name) } else { self.text(other.attribute) };
            stated.is_some_and(|stated| other.values.is_empty() || other.values.contains(&stated))
        };
        let OtherSpan { what, names, has_calls, .. } = OTHERS.iter().find(is)?;
        let named: Vec<_> = names.iter().filter_map(|name| self.text(name)).collect();
        let mut reason = format!("the span is not a call of a model: {what}");
        if !named.is_empty() {
            reason = format!("{reason} ({})", named.join(", "));
        }
        if *has_calls {
            let inside =
                if self.contains_calls { "its calls of models have spans of their own" } else { NO_CALLS };
            reason = format!("{reason}; {inside}");
        }
        Some(reason)
    }
}

const NO_CALLS: &str = "no call of a model inside it was exported";
