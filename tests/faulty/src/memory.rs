//! Memory that runs out.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::OnceLock;

use rusqlite::ffi;

use crate::ALLOCATIONS;

struct Real(ffi::sqlite3_mem_methods);

// The table of an allocator never changes.
unsafe impl Send for Real {}
unsafe impl Sync for Real {}

static REAL: OnceLock<Real> = OnceLock::new();

fn real() -> &'static ffi::sqlite3_mem_methods {
    &REAL.get().expect("installed").0
}

unsafe extern "C" fn allocate(size: c_int) -> *mut c_void {
    if ALLOCATIONS.blows() {
        return null_mut();
    }
    unsafe { real().xMalloc.expect("an allocator")(size) }
}

unsafe extern "C" fn reallocate(memory: *mut c_void, size: c_int) -> *mut c_void {
    if ALLOCATIONS.blows() {
        return null_mut();
    }
    unsafe { real().xRealloc.expect("an allocator")(memory, size) }
}

pub(crate) fn install() {
    unsafe {
        let mut methods = MaybeUninit::<ffi::sqlite3_mem_methods>::uninit();
        assert_eq!(ffi::sqlite3_config(ffi::SQLITE_CONFIG_GETMALLOC, methods.as_mut_ptr()), ffi::SQLITE_OK);
        let methods = methods.assume_init();
        let faulty =
            ffi::sqlite3_mem_methods { xMalloc: Some(allocate), xRealloc: Some(reallocate), ..methods };
        assert!(REAL.set(Real(methods)).is_ok());
        let installed = ffi::sqlite3_config(ffi::SQLITE_CONFIG_MALLOC, &raw const faulty);
        assert_eq!(installed, ffi::SQLITE_OK, "SQLite was in use already");
    }
}
