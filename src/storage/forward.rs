//! Methods of traits that only call other methods.

/// Implements methods of a trait by the inherent methods that have the same names and parameters.
///
/// All methods of a trait are in one `impl` block. Inherent methods are in other files, some by further subjects.
macro_rules! forward_to_inherent {
    ($(fn $name:ident(&self $(, $parameter:ident: $type:ty)* $(,)?) -> $returned:ty;)+) => {
        $(fn $name(&self $(, $parameter: $type)*) -> $returned {
            Self::$name(self $(, $parameter)*)
        })+
    };
}
pub(super) use forward_to_inherent;
