//! The attributes of contracts.

use crate::artifact::AttributeInfo;

pub(super) const EFFECTS: AttributeInfo = AttributeInfo::count("effects", "the number of declared effects");
pub(super) const IO_REFS: AttributeInfo = AttributeInfo::count("io_refs", "the number of declared refs");

pub(super) const ALL: [AttributeInfo; 7] = [
    AttributeInfo::text("effect", "the name of an effect"),
    EFFECTS,
    AttributeInfo::text("io_ref", "the name of a ref"),
    AttributeInfo::text("io_ref_kind", "the name and the kind of a ref"),
    AttributeInfo::text("io_ref_mode", "the name and the mode of a ref"),
    IO_REFS,
    AttributeInfo::text("target", "the ref that an effect targets"),
];
