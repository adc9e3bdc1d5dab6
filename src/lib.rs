pub mod canonical;
pub mod digest;
