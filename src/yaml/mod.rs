//! YAML 1.2 with the core schema, limited to what JSON can represent, for contracts and for the recordings
//! of other programs.
//!
//! `saphyr_parser` parses the syntax; its events are converted into values here. What it accepts although YAML 1.2 or
//! this archive does not is rejected in [`guard`] and here: a document that two programs could interpret differently
//! must not be archived.
//!
//! `serde-saphyr` falls short: deserializing any value, it rounds integers of more than 64 bits, reads `1_000` and `0b1` as
//! numbers, expands `<<`, decodes `!!binary` and drops unknown tags, turns the key `1` into a string, and accepts
//! documents that declare YAML 1.1. None of that can be seen behind serde, and the core hash depends on it.
//!
//! Aliases share nodes until the whole document is known to be within the limits, so that a small text cannot claim
//! much memory or time.

mod guard;
mod scalar;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use crate::json::reader::{Defect, Limit, Limits, MAX_NUMBER_DIGITS, ReadError, excerpt, too_deep};
use crate::json::{Number, Object, Value};

use guard::GuardedText;
use scalar::{PlainScalar, YamlContent, YamlNode};

/// The parser's own limit on the nesting of `[` and `{`, which it may reach before it reports the first event.
const FLOW_LIMIT_MESSAGE: &str = "recursion limit exceeded";

/// How scalars become values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum YamlSchema {
    /// By the core schema of YAML 1.2.
    Core,
    /// Plain scalars are strings, except those that are null. Programs that write YAML 1.1 write strings without quotes
    /// that are numbers in YAML 1.2, such as `1e5`. Scalars with the tag `!!binary` are objects with the member
    /// [`BINARY`], and the tags `!!python/str`, `!!python/unicode` and `!!python/tuple` are accepted. A list of one text with
    /// the tag of the strings of `multidict` is this text, also where it is a key. A text may declare YAML 1.1, and lines of
    /// quoted scalars need not be indented.
    Text,
    /// As `Text`, but plain scalars have the type with which `PyYAML` writes them: `null`, `true`, `1` and `1.0e-05` are not
    /// strings, `1e5` and `0o17` are.
    Written,
}

/// The name of the only member of the object that a scalar with the tag `!!binary` becomes: its text, in Base64.
pub(crate) const BINARY: &str = "!!binary";

/// Reads `text`, which has no byte order mark, as one YAML document.
///
/// # Errors
/// Returns the first defect, with its line and column.
pub(crate) fn read(text: &str, schema: YamlSchema, limits: &Limits) -> Result<Value<'static>, ReadError> {
    match read_as_written(text, schema, limits) {
        Err(error) if schema != YamlSchema::Core && error.defect == Defect::Syntax => {
            let indented = guard::indented(text);
            let is_same = indented == text;
            let read = || read_as_written(&indented, schema, limits).ok();
            (!is_same).then(read).flatten().ok_or(error)
        }
        read => read,
    }
}

fn read_as_written(text: &str, schema: YamlSchema, limits: &Limits) -> Result<Value<'static>, ReadError> {
    let guarded = GuardedText::new(text, schema == YamlSchema::Core)?;
    let mut builder = Builder::new(schema, limits);
    let mut take = |outcome: Result<(Event<'_>, Span), ScanError>| {
        let (event, span) = outcome.map_err(|error| syntax_error(&error))?;
        builder.take(event, span, &guarded).map_err(|refusal| refusal.at(span))?;
        Ok(span.end.index())
    };
    if let Some(chars) = guarded.limited() {
        let read = chars.read();
        for outcome in Parser::new_from_iter(chars) {
            read.check(text)?;
            read.reach(take(outcome)?);
        }
    } else {
        Parser::new_from_str(guarded.text()).try_for_each(|outcome| take(outcome).map(drop))?;
    }
    builder
        .finish()
        .ok_or_else(|| ReadError::at(text.as_bytes(), text.len(), Defect::Syntax, "there is no document"))
}

fn syntax_error(error: &ScanError) -> ReadError {
    let (defect, message) = if error.info() == FLOW_LIMIT_MESSAGE {
        (Defect::TooDeep, "nested deeper than 255 levels of [ and {, the limit for YAML (JSON allows more)")
    } else {
        (Defect::Syntax, error.info())
    };
    ReadError {
        defect,
        line: error.marker().line(),
        column: error.marker().col() + 1,
        message: message.to_owned(),
        limit: None,
    }
}

/// The error for an event; the location is that of the event.
struct YamlEventError {
    defect: Defect,
    message: String,
    limit: Option<Limit>,
}

impl YamlEventError {
    fn new(defect: Defect, message: impl Into<String>) -> Self {
        Self { defect, message: message.into(), limit: None }
    }

    fn at(self, span: Span) -> ReadError {
        ReadError {
            defect: self.defect,
            line: span.start.line(),
            column: span.start.col() + 1,
            message: self.message,
            limit: self.limit,
        }
    }
}

type YamlResult<T> = Result<T, YamlEventError>;

/// A collection whose end has not been reached.
struct OpenCollection {
    node: YamlNode,
    anchor: usize,
    is_flow: bool,
    /// Whether it is the list of arguments of a string of Python.
    is_string: bool,
    /// The keys of a mapping so far.
    keys: HashSet<String>,
    /// The key of the next value.
    key: Option<String>,
}

struct Builder<'l> {
    schema: YamlSchema,
    limits: &'l Limits,
    open: Vec<OpenCollection>,
    /// The targets of aliases. The parser assigns every anchor a separate number, even if names repeat.
    anchors: HashMap<usize, Rc<YamlNode>>,
    values: usize,
    bytes: u64,
    began: bool,
    root: Option<Rc<YamlNode>>,
}

impl<'l> Builder<'l> {
    fn new(schema: YamlSchema, limits: &'l Limits) -> Self {
        Self {
            schema,
            limits,
            open: Vec::new(),
            anchors: HashMap::new(),
            values: 0,
            bytes: 0,
            began: false,
            root: None,
        }
    }

    fn finish(mut self) -> Option<Value<'static>> {
        // Nodes that are not shared with an alias can then be moved.
        self.anchors.clear();
        self.root.map(YamlNode::into_value)
    }

    fn take(&mut self, event: Event<'_>, span: Span, guarded: &GuardedText<'_>) -> YamlResult<()> {
        match event {
            Event::DocumentStart(_) if self.began => {
                let message = "a second document begins here; the file must be a single document";
                Err(YamlEventError::new(Defect::Syntax, message))
            }
            Event::DocumentStart(_) => {
                self.began = true;
                Ok(())
            }
            Event::Alias(anchor) => self.alias(anchor),
            Event::Scalar(text, style, anchor, tag) => {
                let text = guarded.scalar(text, style, span.end.index());
                guard::scalar(&text, style)
                    .map_err(|message| YamlEventError::new(Defect::Syntax, message))?;
                let bytes = text.len();
                let node = Rc::new(YamlNode::scalar(self.scalar(text, style, tag.as_deref())?, bytes));
                self.count(&node)?;
                self.place(node, anchor)
            }
            Event::SequenceStart(anchor, tag) if self.is_python_string(tag.as_deref()) => {
                let node = YamlNode::collection(YamlContent::Sequence(Vec::new()));
                self.open.push(OpenCollection {
                    node,
                    anchor,
                    is_flow: false,
                    is_string: true,
                    keys: HashSet::new(),
                    key: None,
                });
                Ok(())
            }
            Event::SequenceStart(anchor, tag) => {
                if self.schema == YamlSchema::Core || !is_python(tag.as_deref(), &["tuple"]) {
                    check_tag(tag.as_deref(), "seq")?;
                }
                self.begin(YamlContent::Sequence(Vec::new()), anchor, self.is_flow(span, guarded)?)
            }
            Event::MappingStart(anchor, tag) => {
                check_tag(tag.as_deref(), "map")?;
                self.begin(YamlContent::Mapping(Vec::new()), anchor, self.is_flow(span, guarded)?)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) if open.is_string => self.place(only_string(&open.node)?, open.anchor),
                Some(open) => self.place(Rc::new(open.node), open.anchor),
                None => Ok(()),
            },
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Nothing => Ok(()),
        }
    }

    fn scalar(
        &self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
    ) -> YamlResult<Value<'static>> {
        if self.schema == YamlSchema::Core {
            return resolve(text, style, tag);
        }
        let own = |text: Cow<'_, str>| Value::String(Cow::Owned(text.into_owned()));
        match tag {
            None if style == ScalarStyle::Plain && self.is_typed(&PlainScalar::parse(&text), &text) => {
                resolve(text, style, tag)
            }
            None => Ok(own(text)),
            Some(_) if is_python(tag, &["str", "unicode"]) => Ok(own(text)),
            Some(tag) if short(tag).is_ok_and(|tag| tag == "binary") => {
                let members = vec![(Cow::Borrowed(BINARY), own(text))];
                Ok(Value::Object(Object::from_members(members)))
            }
            tag => resolve(text, style, tag),
        }
    }

    /// Returns whether a plain scalar of this form is not a string.
    fn is_typed(&self, form: &PlainScalar<'_>, text: &str) -> bool {
        if self.schema == YamlSchema::Text {
            return *form == PlainScalar::Null;
        }
        match form {
            PlainScalar::Null | PlainScalar::Bool(_) | PlainScalar::NotFinite => true,
            PlainScalar::Integer { radix, digits, .. } => {
                *radix == 10 && (*digits == "0" || !digits.starts_with('0'))
            }
            PlainScalar::Float { exponent, .. } => {
                text.contains('.') && exponent.is_none_or(|exponent| exponent.starts_with(['-', '+']))
            }
            PlainScalar::Text => false,
        }
    }

    /// Returns whether a tag is that of the strings of `multidict`, as which aiohttp has the names of headers.
    fn is_python_string(&self, tag: Option<&Tag>) -> bool {
        let tag = tag.filter(|_| self.schema != YamlSchema::Core).and_then(|tag| short(tag).ok());
        let is_new =
            |tag: &str| ["python/object/apply:", "python/object/new:"].iter().any(|new| tag.starts_with(new));
        tag.is_some_and(|tag| is_new(&tag) && tag.rsplit('.').next() == Some("istr"))
    }

    /// Returns whether a mapping key comes next.
    fn at_key(&self) -> bool {
        self.open
            .last()
            .is_some_and(|open| matches!(open.node.content, YamlContent::Mapping(_)) && open.key.is_none())
    }

    /// Returns whether a collection is one with brackets, as far as that matters for its indentation.
    fn is_flow(&self, span: Span, guarded: &GuardedText<'_>) -> YamlResult<bool> {
        let is_in_flow = self.open.last().is_some_and(|open| open.is_flow);
        guarded.is_flow(span, is_in_flow).map_err(|message| YamlEventError::new(Defect::Syntax, message))
    }

    fn begin(&mut self, content: YamlContent, anchor: usize, is_flow: bool) -> YamlResult<()> {
        if self.at_key() {
            return Err(not_a_key("a collection"));
        }
        let node = YamlNode::collection(content);
        self.count(&node)?;
        self.open.push(OpenCollection {
            node,
            anchor,
            is_flow,
            is_string: false,
            keys: HashSet::new(),
            key: None,
        });
        Ok(())
    }

    fn alias(&mut self, anchor: usize) -> YamlResult<()> {
        let Some(node) = self.anchors.get(&anchor).map(Rc::clone) else {
            let message = "the alias refers to a collection that contains it; write out the intended value";
            return Err(YamlEventError::new(Defect::Syntax, message));
        };
        self.count(&node)?;
        self.place(node, 0)
    }

    /// Counts all of `node` against the limits before it is expanded. Keys count as bytes, not as values.
    fn count(&mut self, node: &YamlNode) -> YamlResult<()> {
        let limits = self.limits;
        let depth = limits.depth.min(Limits::MAX_DEPTH);
        if self.open.len() + node.height > depth {
            let error = YamlEventError::new(Defect::TooDeep, too_deep(depth));
            return Err(YamlEventError { limit: Some(Limit::Depth), ..error });
        }
        if !self.at_key() {
            self.values = self.values.saturating_add(node.values);
        }
        self.bytes = self.bytes.saturating_add(node.bytes);
        let (limit, message) = if self.values > limits.values {
            (Limit::Values, format!("the document has more than {} values", limits.values))
        } else if self.bytes > limits.bytes {
            let message = format!("with aliases expanded, the document has more than {} bytes", limits.bytes);
            (Limit::Bytes, message)
        } else {
            return Ok(());
        };
        Err(YamlEventError { defect: Defect::TooLarge, message, limit: Some(limit) })
    }

    /// Adds a completed node to its parent.
    fn place(&mut self, node: Rc<YamlNode>, anchor: usize) -> YamlResult<()> {
        if anchor > 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.node.content {
            YamlContent::Sequence(elements) => elements.push(Rc::clone(&node)),
            YamlContent::Mapping(members) => match open.key.take() {
                Some(key) => members.push((key, Rc::clone(&node))),
                None => return open.set_key(&node),
            },
            YamlContent::Scalar(_) => {}
        }
        open.node.measure(&node);
        Ok(())
    }
}

impl OpenCollection {
    fn set_key(&mut self, node: &YamlNode) -> YamlResult<()> {
        let key = match &node.content {
            YamlContent::Scalar(Value::String(key)) => key.as_ref(),
            YamlContent::Scalar(other) => return Err(not_a_key(other.type_name())),
            _ => return Err(not_a_key("a collection")),
        };
        if !self.keys.insert(key.to_owned()) {
            let message = format!("the mapping already has a key {}", excerpt(key));
            return Err(YamlEventError::new(Defect::DuplicateKey, message));
        }
        self.key = Some(key.to_owned());
        self.node.bytes += node.bytes;
        Ok(())
    }
}

/// Returns the text that is the only element of a list.
fn only_string(list: &YamlNode) -> YamlResult<Rc<YamlNode>> {
    match &list.content {
        YamlContent::Sequence(elements) if let [only] = elements.as_slice() => Ok(Rc::clone(only)),
        _ => Err(YamlEventError::new(Defect::Syntax, "a string of Python has one argument")),
    }
}

fn not_a_key(sort: &str) -> YamlEventError {
    YamlEventError::new(
        Defect::Syntax,
        format!("a key must be a string, not {sort}; quote it to make it a string"),
    )
}

/// Returns the short form of a tag, without the prefix that `!!` abbreviates. The non-specific tag `!` is `!`.
fn short(tag: &Tag) -> Result<String, YamlEventError> {
    let whole = format!("{}{}", tag.handle, tag.suffix);
    match whole.strip_prefix("tag:yaml.org,2002:") {
        Some(short) => Ok(short.to_owned()),
        None if whole == "!" => Ok(whole),
        None => Err(unknown_tag(&whole)),
    }
}

/// Returns whether a tag is one of those with which `PyYAML` marks these types of Python.
fn is_python(tag: Option<&Tag>, types: &[&str]) -> bool {
    let tag = tag.and_then(|tag| short(tag).ok());
    tag.as_deref().and_then(|tag| tag.strip_prefix("python/")).is_some_and(|name| types.contains(&name))
}

fn unknown_tag(tag: &str) -> YamlEventError {
    let message = format!(
        "the tag {} is not supported; only !!str, !!int, !!float, !!bool, !!null, !!seq and !!map are",
        excerpt(tag)
    );
    YamlEventError::new(Defect::Syntax, message)
}

/// Checks the tag of a collection whose own tag is `expected`.
fn check_tag(tag: Option<&Tag>, expected: &str) -> YamlResult<()> {
    match tag.map(short).transpose()?.as_deref() {
        None | Some("!") => Ok(()),
        Some(tag) if tag == expected => Ok(()),
        Some(tag @ ("str" | "int" | "float" | "bool" | "null" | "seq" | "map")) => {
            let message = format!("!!{tag} cannot be applied to a !!{expected}");
            Err(YamlEventError::new(Defect::Syntax, message))
        }
        Some(tag) => Err(unknown_tag(tag)),
    }
}

/// Returns the value of a scalar.
fn resolve(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>) -> YamlResult<Value<'static>> {
    let tag = tag.map(short).transpose()?;
    let form = match (tag.as_deref(), style) {
        (None, ScalarStyle::Plain) | (Some("int" | "float" | "bool" | "null"), _) => {
            PlainScalar::parse(&text)
        }
        (None | Some("!" | "str"), _) => PlainScalar::Text,
        (Some(tag @ ("seq" | "map")), _) => {
            let message = format!("!!{tag} cannot be applied to a scalar");
            return Err(YamlEventError::new(Defect::Syntax, message));
        }
        (Some(other), _) => return Err(unknown_tag(other)),
    };
    if form.is_too_long() {
        let message = format!("the number has more than {MAX_NUMBER_DIGITS} digits, the limit");
        return Err(YamlEventError::new(Defect::Number, message));
    }
    let number = |literal: String| Value::Number(Number::from_literal(literal));
    let value = match (tag.as_deref(), form) {
        (None | Some("null"), PlainScalar::Null) => Some(Value::Null),
        (None | Some("bool"), PlainScalar::Bool(truth)) => Some(Value::Bool(truth)),
        (Some("float"), form) => form.float_literal().map(number),
        (Some("int"), PlainScalar::Integer { .. })
        | (None, PlainScalar::Integer { .. } | PlainScalar::Float { .. } | PlainScalar::NotFinite) => {
            form.literal().map(number)
        }
        (None | Some("!" | "str"), _) => return Ok(Value::String(Cow::Owned(text.into_owned()))),
        _ => None,
    };
    value.ok_or_else(|| {
        let tag = tag.unwrap_or_default();
        YamlEventError::new(Defect::Syntax, format!("{} is not a !!{tag}", excerpt(&text)))
    })
}

#[cfg(test)]
mod tests;
