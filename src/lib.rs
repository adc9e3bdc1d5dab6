pub mod artifact;
pub mod canonical;
pub mod digest;
pub mod kinds;
pub mod verify;
