//! The rules: the only list of what looks like a secret.
//!
//! Each names the words that what it finds contains at its beginning, which one search finds together, and a pattern for the
//! rest. `examples` are found and `others` are not; parts are joined, so that this file contains no key.

/// A rule.
#[derive(Debug)]
pub(super) struct SecretRule {
    /// The name, in lowercase with hyphens.
    pub(super) name: &'static str,
    /// What it looks like, with an article.
    pub(super) looks_like: &'static str,
    /// What it begins with. No word of another rule begins with it, unless it is the same.
    pub(super) words: &'static [&'static str],
    /// The whole as a regular expression, from the word on.
    pub(super) pattern: &'static str,
    /// Whether it must not be part of a longer word.
    pub(super) is_word: bool,
    #[cfg(test)]
    pub(super) examples: &'static [&'static [&'static str]],
    #[cfg(test)]
    pub(super) others: &'static [&'static [&'static str]],
}

impl PartialEq for SecretRule {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for SecretRule {}

/// A match in bytes: the rule, and where it begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SecretSpan {
    pub(super) rule: &'static SecretRule,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Defines the list. Examples are compiled for tests only.
macro_rules! rules {
    ($($name:literal, $looks_like:literal, $words:expr, $pattern:literal, $is_word:literal;
       $($example:expr),+; $($other:expr),+;)+) => {
        /// All rules but that of card numbers.
        pub(super) static RULES: &[SecretRule] = &[$(SecretRule {
            name: $name,
            looks_like: $looks_like,
            words: &$words,
            pattern: $pattern,
            is_word: $is_word,
            #[cfg(test)]
            examples: &[$(&$example),+],
            #[cfg(test)]
            others: &[$(&$other),+],
        }),+];
    };
}

rules! {
    "openai-api-key", "an API key of OpenAI", ["sk-"],
    "sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}|[A-Za-z0-9]{48})", true;
    ["sk-", "proj-", "Ab3dEf6hIj9lMn2pQr5tUv8xYz1B", "c4eFg7iJk0mNo3qRs6uVw9yZa2C"],
    ["sk-", "Ab3dEf6hIj9lMn2pQr5t", "T3BlbkFJ", "Uv8xYz1Bc4eFg7iJk0mN"],
    ["sk-", "Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eFg7iJk0mNo3qRs6uV"];
    ["sk-not-a-key"], ["task-proj-Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eFg7iJk0mNo3qR"],
    ["sk-proj-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"], ["sk-proj-your-api-key"];

    "anthropic-api-key", "an API key of Anthropic", ["sk-"],
    "sk-ant-(?:api|admin|oat|ort|sid)[0-9]{2}-[A-Za-z0-9_-]{40,}", true;
    ["sk-", "ant-", "api03-", "Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eFg7iJk0mNo3qRs6uV"];
    ["sk-ant-api03-short"], ["sk-ant-api03-example-example-example-example-example-example"];

    "google-api-key", "an API key of Google", ["AIza"], "AIza[A-Za-z0-9_-]{35}", true;
    ["AIza", "SyAb3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eFg"];
    ["AIza", "SyAb3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eFgAndMore"], ["AIzaSy"];

    "google-oauth-token", "an OAuth token of Google", ["ya29.", "GOCSPX-"],
    r"ya29\.[A-Za-z0-9_-]{30,}|GOCSPX-[A-Za-z0-9_-]{28}", true;
    ["ya29", ".a0Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4"], ["GOCSPX", "-Ab3dEf6hIj9lMn2pQr5tUv8xYz1B"];
    ["ya29.a0"], ["GOCSPX-your-client-secret"];

    "aws-access-key-id", "an access key id of AWS", ["AKIA", "ASIA"], "A[KS]IA[A-Z2-7]{16}", true;
    ["AKIA", "Q3EGRTUVW4567ABC"], ["ASIA", "Q3EGRTUVW4567ABC"];
    ["AKIAIOSFODNN7EXAMPLE"], ["AKIAQ3EGRTUVW4567ABCD"], ["EURASIAQ3EGRTUVW4567ABC"];

    "aws-secret-access-key", "a secret access key of AWS",
    ["aws_secret_access_key", "AWS_SECRET_ACCESS_KEY", "SecretAccessKey"],
    r#"(?i:aws_secret_access_key|SecretAccessKey)[\\"'\s:=]{1,12}[A-Za-z0-9/+]{40}"#, true;
    ["aws_secret_access_key = ", "Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eFg7iJk0/N"],
    ["SecretAccessKey\": \"", "Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eFg7iJk0+N"];
    ["aws_secret_access_key = ${SECRET}"], ["aws_secret_access_key=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"];

    "github-token", "a token of GitHub", ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
    "gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}", true;
    ["ghp", "_Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eFg7iJ"],
    ["github_pat", "_Ab3dEf6hIj9lMn2pQr5tUv", "_Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eFg7iJk0mNo3qRs6uVw9yZa2CdEf5"];
    ["ghp_short"], ["ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"];

    "gitlab-token", "a token of GitLab", ["glpat-"], "glpat-[A-Za-z0-9_-]{20,}", true;
    ["glpat", "-Ab3dEf6hIj9lMn2pQr5t"];
    ["glpat-your-token"];

    "slack-token", "a token of Slack", ["xox", "xapp-"],
    "xox[abeoprs]-(?:[0-9]+-){1,4}[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Z0-9]{6,20}-[0-9]{6,20}-[a-z0-9]{20,}", true;
    ["xoxb", "-1234567890-1234567890123-", "Ab3dEf6hIj9lMn2pQr5tUv8x"],
    ["xapp", "-1-A0B1C2D3E4F-1234567890123-", "ab3def6hij9lmn2pqr5tuv8xyz1bc4ef"];
    ["xoxo-love"], ["xoxb-your-token"];

    "slack-webhook", "a webhook of Slack", ["hooks.slack.com/services/"],
    "hooks\\.slack\\.com/services/T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{20,30}", true;
    ["hooks.slack.com/services/", "T0A1B2C3D/B0A1B2C3D/", "Ab3dEf6hIj9lMn2pQr5tUv8x"];
    ["hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"];

    "stripe-key", "a key of Stripe", ["sk_live_", "rk_live_", "whsec_"],
    "[sr]k_live_[A-Za-z0-9]{20,}|whsec_[A-Za-z0-9]{32,64}", true;
    ["sk", "_live_", "Ab3dEf6hIj9lMn2pQr5tUv8x"], ["wh", "sec_", "Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eF"];
    ["sk_live_short"], ["risk_live_Ab3dEf6hIj9lMn2pQr5tUv8x"];

    "hugging-face-token", "a token of Hugging Face", ["hf_"], "hf_[A-Za-z]{34}", true;
    ["hf", "_AbcdEfghIjklMnopQrstUvwxYzAbcdEfgh"];
    ["hf_hub_download"], ["half_AbcdEfghIjklMnopQrstUvwxYzAbcdEfgh"];

    "npm-token", "a token of npm", ["npm_"], "npm_[A-Za-z0-9]{36}", true;
    ["npm", "_Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eFg7iJ"];
    ["npm_config_registry"];

    "pypi-token", "a token of PyPI", ["pypi-"], "pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}", true;
    ["pypi", "-AgEIcHlwaS5vcmc", "Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eFg7iJk0mNo3qRs6uVw9y"];
    ["pypi-simple"];

    "private-key", "a private key", ["-----BEGIN "],
    "-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----", false;
    ["-----BEGIN", " RSA PRIVATE", " KEY-----"], ["-----BEGIN", " PRIVATE", " KEY-----\\nMIIE"],
    ["-----BEGIN", " PGP PRIVATE", " KEY BLOCK-----"];
    ["-----BEGIN CERTIFICATE-----"], ["-----BEGIN PUBLIC KEY-----"];

    "json-web-token", "a JSON Web Token", ["eyJ"],
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}", true;
    ["eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiI0NzExIn0", ".Ab3dEf6hIj9lMn2pQr5tUv8xYz1Bc4eFg7iJ"];
    ["eyJhbGciOiJIUzI1NiJ9"], ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0NzExIn0.short"];

    "bearer-token", "a bearer token", ["Bearer ", "bearer ", "BEARER "],
    "(?i:bearer) [A-Za-z0-9._~+/-]{24,}=*", true;
    ["Bearer ", "Ab3dEf6hIj9lMn2pQr5tUv8xYz1B"], ["bearer ", "0123456789abcdefABCDEF9876543210"];
    ["Bearer of bad news"], ["Bearer YOUR_API_KEY_WHICH_IS_LONG_1"], ["Bearer sha256-is-not-a-token-of-this-sort"];
}

/// The rule of card numbers, which are digits with a checksum.
pub(super) static CARD: SecretRule = SecretRule {
    name: "card-number",
    looks_like: "a card number",
    words: &[],
    pattern: "",
    is_word: true,
    #[cfg(test)]
    examples: &[
        &["4111", "1111", "1111", "1111"],
        &["5500 0000", " 0000 0004"],
        &["3782-", "822463-", "10005"],
    ],
    #[cfg(test)]
    others: &[&["4111111111111112"], &["1700000000000000"], &["0.4111111111111111"]],
};
