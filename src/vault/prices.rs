//! Prices of models, and the costs of runs that state none. All sums are of integers: millionths of a US dollar.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::artifact::ValueType;

/// The price of a model, for a million tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelPrice {
    /// The id of the model; with `*` at the end, the models whose ids begin with what precedes it. Of several that match,
    /// the whole id counts, otherwise the longest beginning.
    pub model: String,
    /// The price of a million input tokens in US dollars.
    pub input: UsdAmount,
    /// The price of a million output tokens in US dollars.
    pub output: UsdAmount,
}

/// An amount in millionths of a US dollar, written in dollars as a decimal number with up to six digits after the point,
/// such as `2.50`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = r"^[0-9]+(\.[0-9]{1,6})?$", description = "An amount of US dollars.")]
pub struct UsdAmount(u64);

/// The error for text that is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an amount of US dollars with up to six digits after the point, such as 2.50")]
pub struct ParseAmountError;

impl FromStr for UsdAmount {
    type Err = ParseAmountError;

    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        // Prices are written with two digits, whichever these are.
        let shortest = match text.split_once('.') {
            Some((_, "")) => return Err(ParseAmountError),
            Some(_) => text.trim_end_matches('0').trim_end_matches('.'),
            None => text,
        };
        let millionths = ValueType::Amount.number(shortest).and_then(|number| u64::try_from(number).ok());
        millionths.map(Self).ok_or(ParseAmountError)
    }
}

impl Display for UsdAmount {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let number = i64::try_from(self.0).unwrap_or(i64::MAX);
        f.write_str(&ValueType::Amount.value(number).unwrap_or_default())
    }
}

impl TryFrom<String> for UsdAmount {
    type Error = ParseAmountError;

    fn try_from(text: String) -> Result<Self, ParseAmountError> {
        text.parse()
    }
}

impl From<UsdAmount> for String {
    fn from(amount: UsdAmount) -> Self {
        amount.to_string()
    }
}

/// The number of tokens that prices are for.
const TOKENS_OF_PRICE: u128 = 1_000_000;

impl ModelPrice {
    /// Returns the price of a model.
    fn of_model<'p>(prices: &'p [Self], model: &str) -> Option<&'p Self> {
        let prefix = |price: &&Self| {
            let prefix = price.model.strip_suffix('*')?;
            model.starts_with(prefix).then_some(prefix.len())
        };
        let whole = prices.iter().find(|price| price.model == model);
        whole.or_else(|| prices.iter().filter(|price| prefix(price).is_some()).max_by_key(prefix))
    }

    /// Returns the costs of a run in millionths of a US dollar, rounded. Returns `None` if its tokens are not known, if one
    /// of its models has no price, or if they have different prices: a run does not state the tokens of each model.
    pub(super) fn cost_of_run(prices: &[Self], models: &[String], tokens: RunTokens) -> Option<i64> {
        let (first, others) = models.split_first()?;
        let price = Self::of_model(prices, first)?;
        let is_same = |model: &String| {
            let other = Self::of_model(prices, model);
            other.is_some_and(|other| (other.input, other.output) == (price.input, price.output))
        };
        if !others.iter().all(is_same) {
            return None;
        }
        let (input, output) = (price.input.times(tokens.input)?, price.output.times(tokens.output)?);
        i64::try_from((input.checked_add(output)? + TOKENS_OF_PRICE / 2) / TOKENS_OF_PRICE).ok()
    }
}

/// The numbers of tokens that a run states.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunTokens {
    pub(super) input: Option<i64>,
    pub(super) output: Option<i64>,
}

impl UsdAmount {
    /// Returns the product with a number of tokens. What costs nothing need not be counted.
    fn times(self, tokens: Option<i64>) -> Option<u128> {
        if self.0 == 0 {
            return Some(0);
        }
        u128::from(self.0).checked_mul(u128::try_from(tokens?).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn amount(text: &str) -> UsdAmount {
        text.parse().unwrap()
    }

    fn price(model: &str, input: &str, output: &str) -> ModelPrice {
        ModelPrice { model: model.to_owned(), input: amount(input), output: amount(output) }
    }

    fn cost(prices: &[ModelPrice], models: &[&str], tokens: [Option<i64>; 2]) -> Option<i64> {
        let models: Vec<String> = models.iter().map(|model| (*model).to_owned()).collect();
        ModelPrice::cost_of_run(prices, &models, RunTokens { input: tokens[0], output: tokens[1] })
    }

    #[test]
    fn amounts_are_exact_decimals() {
        assert_eq!(amount("2.50"), amount("2.5"));
        assert_eq!(amount("10.00").to_string(), "10");
        assert_eq!(amount("0.000001").to_string(), "0.000001");
        assert_eq!(amount("100").to_string(), "100");
        for text in
            ["", ".5", "5.", "-1", "+1", "1e3", "0.0000001", "1.2.3", "01", "1,5", "99999999999999999999"]
        {
            assert_eq!(text.parse::<UsdAmount>(), Err(ParseAmountError), "{text}");
        }
        assert!(serde_json::from_str::<UsdAmount>("2.5").is_err(), "a JSON number is not exact");
        assert_eq!(serde_json::to_string(&amount("2.50")).unwrap(), "\"2.5\"");
    }

    #[test]
    fn the_most_specific_price_counts() {
        let prices =
            [price("*", "9", "9"), price("gpt-4o*", "2.50", "10"), price("gpt-4o-mini", "0.15", "0.6")];
        let tokens = [Some(1_000_000), Some(0)];
        assert_eq!(cost(&prices, &["gpt-4o-mini"], tokens), Some(150_000));
        assert_eq!(cost(&prices, &["gpt-4o-mini-2024-07-18"], tokens), Some(2_500_000));
        assert_eq!(cost(&prices, &["claude"], tokens), Some(9_000_000));
        assert_eq!(cost(&prices[1..], &["claude"], tokens), None);
    }

    #[test]
    fn costs_are_of_known_tokens_at_one_price() {
        let prices =
            [price("a*", "0.3", "1"), price("b", "0.30", "1.0"), price("c", "1", "1"), price("e", "1", "0")];
        assert_eq!(cost(&prices, &["a-1", "b"], [Some(1), Some(2)]), Some(2));
        assert_eq!(cost(&prices, &["a-1"], [Some(5), Some(0)]), Some(2), "1.5 is rounded up");
        assert_eq!(cost(&prices, &["a-1", "c"], [Some(1), Some(2)]), None);
        assert_eq!(cost(&prices, &["a-1", "d"], [Some(1), Some(2)]), None);
        assert_eq!(cost(&prices, &[], [Some(1), Some(2)]), None);
        assert_eq!(cost(&prices, &["c"], [Some(1), None]), None);
        assert_eq!(cost(&prices, &["e"], [Some(7), None]), Some(7), "output is free");
        assert_eq!(cost(&prices, &["c"], [Some(i64::MAX), Some(i64::MAX)]), None);
    }

    proptest! {
        #[test]
        fn an_amount_is_read_as_it_is_written(millionths in 0..1_u64 << 60) {
            let amount = UsdAmount(millionths);
            prop_assert_eq!(amount.to_string().parse(), Ok(amount));
        }
    }
}
