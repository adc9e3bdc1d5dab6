//! Conversion of enums of other rooms into those of requests and answers.

/// Converts the values of one enum into those of another that has the same variants.
macro_rules! convert_same_variants {
    ($from:ident => $to:ident: $($variant:ident),+) => {
        impl From<$from> for $to {
            fn from(value: $from) -> Self {
                match value {
                    $($from::$variant => Self::$variant,)+
                }
            }
        }
    };
}
pub(super) use convert_same_variants;
