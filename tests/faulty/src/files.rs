//! Files that cannot be written.
//!
//! SQLite gives each of its files a piece of memory. Here it has a head of ours, and behind it what the real file system
//! wants.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use rusqlite::ffi::{self, sqlite3_file, sqlite3_int64, sqlite3_io_methods, sqlite3_vfs};

use crate::{ALL_READ_ONLY, READ_ONLY, SYNCS, WRITES};

struct Real(*mut sqlite3_vfs);

// The table of a file system never changes.
unsafe impl Send for Real {}
unsafe impl Sync for Real {}

static REAL: OnceLock<Real> = OnceLock::new();

/// Behind our head, aligned as SQLite aligns.
const HEAD: usize = 16;

unsafe fn real(file: *mut sqlite3_file) -> (*mut sqlite3_file, &'static sqlite3_io_methods) {
    unsafe {
        let real = file.cast::<u8>().add(HEAD).cast::<sqlite3_file>();
        (real, &*(*real).pMethods)
    }
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    unsafe {
        let (file, methods) = real(file);
        methods.xClose.expect("a method")(file)
    }
}

unsafe extern "C" fn read(file: *mut sqlite3_file, to: *mut c_void, size: c_int, at: sqlite3_int64) -> c_int {
    unsafe {
        let (file, methods) = real(file);
        methods.xRead.expect("a method")(file, to, size, at)
    }
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    size: c_int,
    at: sqlite3_int64,
) -> c_int {
    if WRITES.blows() {
        return ffi::SQLITE_FULL;
    }
    unsafe {
        let (file, methods) = real(file);
        methods.xWrite.expect("a method")(file, from, size, at)
    }
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, size: sqlite3_int64) -> c_int {
    if WRITES.blows() {
        return ffi::SQLITE_IOERR_TRUNCATE;
    }
    unsafe {
        let (file, methods) = real(file);
        methods.xTruncate.expect("a method")(file, size)
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    if SYNCS.blows() {
        return ffi::SQLITE_IOERR_FSYNC;
    }
    unsafe {
        let (file, methods) = real(file);
        methods.xSync.expect("a method")(file, flags)
    }
}

unsafe extern "C" fn size(file: *mut sqlite3_file, size: *mut sqlite3_int64) -> c_int {
    unsafe {
        let (file, methods) = real(file);
        methods.xFileSize.expect("a method")(file, size)
    }
}

unsafe extern "C" fn lock(file: *mut sqlite3_file, level: c_int) -> c_int {
    unsafe {
        let (file, methods) = real(file);
        methods.xLock.expect("a method")(file, level)
    }
}

unsafe extern "C" fn unlock(file: *mut sqlite3_file, level: c_int) -> c_int {
    unsafe {
        let (file, methods) = real(file);
        methods.xUnlock.expect("a method")(file, level)
    }
}

unsafe extern "C" fn is_reserved(file: *mut sqlite3_file, out: *mut c_int) -> c_int {
    unsafe {
        let (file, methods) = real(file);
        methods.xCheckReservedLock.expect("a method")(file, out)
    }
}

unsafe extern "C" fn control(file: *mut sqlite3_file, operation: c_int, argument: *mut c_void) -> c_int {
    unsafe {
        let (file, methods) = real(file);
        methods.xFileControl.expect("a method")(file, operation, argument)
    }
}

unsafe extern "C" fn sector_size(file: *mut sqlite3_file) -> c_int {
    unsafe {
        let (file, methods) = real(file);
        methods.xSectorSize.expect("a method")(file)
    }
}

unsafe extern "C" fn characteristics(file: *mut sqlite3_file) -> c_int {
    unsafe {
        let (file, methods) = real(file);
        methods.xDeviceCharacteristics.expect("a method")(file)
    }
}

unsafe extern "C" fn shm_map(
    file: *mut sqlite3_file,
    region: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    unsafe {
        let (file, methods) = real(file);
        methods.xShmMap.expect("a method")(file, region, size, extend, out)
    }
}

unsafe extern "C" fn shm_lock(file: *mut sqlite3_file, offset: c_int, count: c_int, flags: c_int) -> c_int {
    unsafe {
        let (file, methods) = real(file);
        methods.xShmLock.expect("a method")(file, offset, count, flags)
    }
}

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    unsafe {
        let (file, methods) = real(file);
        methods.xShmBarrier.expect("a method")(file);
    }
}

unsafe extern "C" fn shm_unmap(file: *mut sqlite3_file, delete: c_int) -> c_int {
    unsafe {
        let (file, methods) = real(file);
        methods.xShmUnmap.expect("a method")(file, delete)
    }
}

/// Version 2: without the methods for mapped files, so that every read and write comes by.
static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(is_reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    unsafe {
        let vfs = REAL.get().expect("installed").0;
        let real = file.cast::<u8>().add(HEAD).cast::<sqlite3_file>();
        let is_database = flags & ffi::SQLITE_OPEN_MAIN_DB != 0;
        let is_read_only = if is_database { &READ_ONLY } else { &ALL_READ_ONLY }.load(Ordering::Relaxed);
        let writing = ffi::SQLITE_OPEN_READWRITE | ffi::SQLITE_OPEN_CREATE;
        let flags = if is_read_only { flags & !writing | ffi::SQLITE_OPEN_READONLY } else { flags };
        let opened = (*vfs).xOpen.expect("a method")(vfs, name, real, flags, out);
        // Without methods, SQLite knows that there is nothing to close.
        (*file).pMethods = if (*real).pMethods.is_null() { null() } else { &raw const METHODS };
        opened
    }
}

pub(crate) fn install() {
    unsafe {
        assert_eq!(ffi::sqlite3_initialize(), ffi::SQLITE_OK);
        let real = ffi::sqlite3_vfs_find(null());
        assert!(!real.is_null());
        assert!(REAL.set(Real(real)).is_ok());
        // All but opening works on the real one's own data, which the copy has as well.
        let faulty = sqlite3_vfs {
            szOsFile: (*real).szOsFile + c_int::try_from(HEAD).expect("a small number"),
            pNext: null_mut(),
            zName: c"faulty".as_ptr(),
            xOpen: Some(open),
            ..*real
        };
        // It stays registered for the life of the process.
        let faulty = Box::leak(Box::new(faulty));
        assert_eq!(ffi::sqlite3_vfs_register(faulty, 1), ffi::SQLITE_OK);
    }
}
