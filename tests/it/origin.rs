//! Documents of the systems whose formats the kinds are: recordings, and documents that state hashes of their own.

mod documents;
mod programs;
mod recordings;
