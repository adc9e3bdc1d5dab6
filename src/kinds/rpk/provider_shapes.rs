//! The shapes in which steps record what models were asked and answered: the one table of them.
//!
//! A step has a body, such as the `payload` that ReplayKit's listener records of a request. In a body, texts stand where
//! the API of the provider puts them.

/// Where the bodies of an API, or of a habit of recorders, carry texts. Each place is a JSON Pointer into the body in which
/// `*` stands for every element of a list.
///
/// At a place, a string is a text; of a list, every string and every member `text` of its objects is one. Empty texts are
/// passed over.
pub struct Shape {
    /// Whose shape it is.
    pub name: &'static str,
    /// Where requests carry instructions that hold for all that is asked.
    pub instructions: &'static [&'static str],
    /// Where requests carry what is asked, the newest text last.
    pub prompts: &'static [&'static str],
    /// Where responses carry what was answered.
    pub responses: &'static [&'static str],
}

/// Every shape that is looked for. Bodies are looked at in all of them: recorders do not say which they have.
pub const SHAPES: &[Shape] = &[
    Shape {
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
    Shape { name: "ReplayKit listener", instructions: &[], prompts: &[], responses: &["/assembled_text"] },
    Shape {
        name: "OpenAI completions",
        instructions: &[],
        prompts: &["/prompt"],
        responses: &["/choices/*/text"],
    },
    Shape {
        name: "OpenAI chat completions",
        instructions: &[],
        prompts: &["/messages/*/content"],
        responses: &["/choices/*/message/content"],
    },
    Shape {
        name: "OpenAI responses",
        instructions: &["/instructions"],
        prompts: &["/input", "/input/*/content"],
        responses: &["/output_text", "/output/*/content"],
    },
    Shape {
        name: "Anthropic messages",
        instructions: &["/system"],
        prompts: &["/messages/*/content"],
        responses: &["/content"],
    },
    Shape {
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

/// In which capacity a step carries texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// It asks them.
    Prompts,
    /// It answers them.
    Responses,
}

/// Where the bodies stand that are looked at, by step type: JSON Pointers into the step.
pub const BODIES: &[(&str, Carries, &[&str])] = &[
    ("prompt.render", Carries::Prompts, &["/output"]),
    ("model.request", Carries::Prompts, &["/input", "/input/input", "/input/payload"]),
    ("model.response", Carries::Responses, &["/output", "/output/output"]),
    ("output.final", Carries::Responses, &["/output"]),
];

/// In prompts, objects whose member `role` is one of these repeat what the caller did not ask.
pub const ROLES_NOT_ASKED: &[&str] = &["assistant", "model", "tool", "function"];

/// Objects whose member `type` is one of these are neither asked nor answered: what models think, and what tools return.
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
