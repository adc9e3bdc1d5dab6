//! The shapes in which steps record prompts and responses, in one table.
//!
//! A step contains a body, such as the `payload` that ReplayKit's listener records of a request. In a body, texts are
//! at the locations that the provider's API defines.

/// The locations of texts in the bodies of an API or a recorder. Each location is a JSON Pointer into the body in which
/// `*` matches every element of a list.
///
/// A string at a location is a text; in a list, every string and every member `text` of its objects is one. Empty texts
/// are skipped.
pub struct ProviderShape {
    /// The name of the API or recorder.
    pub name: &'static str,
    /// The locations of instructions that apply to the whole request.
    pub instructions: &'static [&'static str],
    /// The locations of prompts in requests, the newest text last.
    pub prompts: &'static [&'static str],
    /// The locations of the responses.
    pub responses: &'static [&'static str],
}

/// All supported shapes. Every body is searched for all of them: recorders do not state which one they use.
pub const SHAPES: &[ProviderShape] = &[
    ProviderShape {
        name: "plain texts",
        instructions: &["/system", "/instructions"],
        prompts: &["", "/text", "/content", "/rendered", "/rendered_prompt", "/prompt"],
        responses: &[
            "",
            "/text",
            "/content",
            "/response",
            "/completion",
            "/result",
            "/answer",
            "/output",
            "/message",
            "/message/content",
        ],
    },
    ProviderShape {
        name: "ReplayKit listener",
        instructions: &[],
        prompts: &[],
        responses: &["/assembled_text"],
    },
    ProviderShape {
        name: "OpenAI completions",
        instructions: &[],
        prompts: &["/prompt"],
        responses: &["/choices/*/text"],
    },
    ProviderShape {
        name: "OpenAI chat completions",
        instructions: &[],
        prompts: &["/messages/*/content"],
        responses: &["/choices/*/message/content"],
    },
    ProviderShape {
        name: "OpenAI responses",
        instructions: &["/instructions"],
        prompts: &["/input", "/input/*/content"],
        responses: &["/output_text", "/output/*/content"],
    },
    ProviderShape {
        name: "Anthropic messages",
        instructions: &["/system"],
        prompts: &["/messages/*/content"],
        responses: &["/content"],
    },
    ProviderShape {
        name: "Gemini generateContent",
        instructions: &[
            "/systemInstruction",
            "/systemInstruction/parts",
            "/system_instruction",
            "/system_instruction/parts",
        ],
        prompts: &["/contents", "/contents/parts", "/contents/*/parts"],
        responses: &["/candidates/*/content/parts"],
    },
];

/// The role of the texts in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepTextRole {
    /// Prompts.
    Prompts,
    /// Responses.
    Responses,
}

/// The locations of bodies by step type: JSON Pointers into the step.
pub const BODIES: &[(&str, StepTextRole, &[&str])] = &[
    ("prompt.render", StepTextRole::Prompts, &["/output"]),
    ("model.request", StepTextRole::Prompts, &["/input", "/input/input", "/input/payload"]),
    ("model.response", StepTextRole::Responses, &["/output", "/output/output"]),
    ("output.final", StepTextRole::Responses, &["/output"]),
];

/// In prompts, objects whose member `role` is one of these repeat texts that are not part of the request.
pub const ROLES_NOT_ASKED: &[&str] = &["assistant", "model", "tool", "function"];

/// Objects whose member `type` is one of these are neither prompts nor responses: reasoning of models, and results of
/// tools.
pub const TYPES_PASSED_OVER: &[&str] = &[
    "reasoning",
    "reasoning_text",
    "thinking",
    "redacted_thinking",
    "function_call_output",
    "computer_call_output",
    "code_interpreter_call_output",
    "tool_result",
    "tool_response",
    "mcp_result",
];
