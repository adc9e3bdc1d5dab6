//! Lists the attributes that artifacts have, and their values.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Operation;
use super::handle::{Vault, limit_of};
use crate::storage::StorageError;

/// A request for the names of the attributes that artifacts have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AttributeNamesRequest {}

/// The names of attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttributeNamesAnswer {
    /// The names, sorted.
    pub names: Vec<String>,
}

/// A request for the values of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AttributeValuesRequest {
    /// The name of the attribute.
    pub name: String,
    /// The beginning of the values; all values if it is empty.
    #[serde(default)]
    pub prefix: String,
    /// Maximum number of values; unlimited if there is none.
    #[serde(default)]
    pub limit: Option<u64>,
}

/// The values of an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttributeValuesAnswer {
    /// The values, sorted.
    pub values: Vec<String>,
}

impl Operation for AttributeNamesRequest {
    type Answer = AttributeNamesAnswer;
    type Error = StorageError;

    const NAME: &'static str = "attribute-names";
    const SUMMARY: &'static str = "List the names of the attributes that artifacts have";

    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<AttributeNamesAnswer, StorageError> {
        Ok(AttributeNamesAnswer { names: vault.snapshot()?.attribute_names()? })
    }
}

impl Operation for AttributeValuesRequest {
    type Answer = AttributeValuesAnswer;
    type Error = StorageError;

    const NAME: &'static str = "attribute-values";
    const SUMMARY: &'static str = "List the values of an attribute";

    /// # Errors
    /// Returns an error if the vault cannot be read.
    fn run(&self, vault: &Vault) -> Result<AttributeValuesAnswer, StorageError> {
        let limit = limit_of(self.limit);
        Ok(AttributeValuesAnswer {
            values: vault.snapshot()?.attribute_values(&self.name, &self.prefix, limit)?,
        })
    }
}
