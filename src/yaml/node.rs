use std::borrow::Cow;
use std::rc::Rc;

use crate::json::{Object, Value};

/// A completed value. Its measures are those of the copy that every alias expands to.
pub(super) struct YamlNode {
    pub(super) content: YamlContent,
    /// The number of values in it, including itself; keys are not counted.
    pub(super) values: usize,
    /// The total size of its scalars and keys in bytes.
    pub(super) bytes: u64,
    /// The number of levels of collections in it, including itself.
    pub(super) height: usize,
}

pub(super) enum YamlContent {
    Scalar(Value<'static>),
    Sequence(Vec<Rc<YamlNode>>),
    Mapping(Vec<(String, Rc<YamlNode>)>),
}

impl YamlNode {
    pub(super) fn scalar(value: Value<'static>, bytes: usize) -> Self {
        Self { bytes: bytes as u64, content: YamlContent::Scalar(value), values: 1, height: 0 }
    }

    pub(super) fn collection(content: YamlContent) -> Self {
        Self { content, values: 1, bytes: 0, height: 1 }
    }

    pub(super) fn measure(&mut self, child: &YamlNode) {
        self.values += child.values;
        self.bytes += child.bytes;
        self.height = self.height.max(child.height + 1);
    }

    /// Returns the value; nodes shared by aliases are copied. The depth limit bounds the recursion.
    pub(super) fn into_value(node: Rc<Self>) -> Value<'static> {
        let content = match Rc::try_unwrap(node) {
            Ok(node) => node.content,
            Err(shared) => match &shared.content {
                YamlContent::Scalar(value) => return value.clone(),
                YamlContent::Sequence(elements) => YamlContent::Sequence(elements.clone()),
                YamlContent::Mapping(members) => YamlContent::Mapping(members.clone()),
            },
        };
        match content {
            YamlContent::Scalar(value) => value,
            YamlContent::Sequence(elements) => {
                Value::Array(elements.into_iter().map(Self::into_value).collect())
            }
            YamlContent::Mapping(members) => {
                let members = members.into_iter();
                let members = members.map(|(key, value)| (Cow::Owned(key), Self::into_value(value)));
                Value::Object(Object::from_members(members.collect()))
            }
        }
    }
}
