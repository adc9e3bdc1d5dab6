use std::io::{self, Cursor, Write};

use flate2::{Compression, GzBuilder};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::Format;
use crate::artifact::MemberBytes;

/// Readable by everybody, writable by the owner: nothing of the machine that writes is told.
const MODE: u32 = 0o644;

/// Writes an archive of `files` to `out`. The same files give the same bytes: they are written in the order of their
/// names, and all times, owners and modes are the same.
///
/// # Errors
/// Those of `out`.
pub fn write(format: Format, files: &[MemberBytes<'_>], out: &mut dyn Write) -> io::Result<()> {
    let mut files = files.to_vec();
    files.sort_unstable_by_key(|file| file.name);
    match format {
        Format::Zip => write_zip(&files, out),
        Format::Tar => write_tar(&files, out),
        Format::TarGz => {
            // 255: the operating system is unknown.
            let mut packed =
                GzBuilder::new().mtime(0).operating_system(255).write(out, Compression::default());
            write_tar(&files, &mut packed)?;
            packed.finish().map(drop)
        }
    }
}

fn write_tar(files: &[MemberBytes<'_>], out: &mut dyn Write) -> io::Result<()> {
    let mut archive = tar::Builder::new(out);
    for file in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(file.bytes.len() as u64);
        header.set_mode(MODE);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        archive.append_data(&mut header, file.name, file.bytes)?;
    }
    archive.finish()
}

fn write_zip(files: &[MemberBytes<'_>], out: &mut dyn Write) -> io::Result<()> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::DEFAULT)
        .unix_permissions(MODE);
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for file in files {
        archive.start_file(file.name, options)?;
        archive.write_all(file.bytes)?;
    }
    out.write_all(archive.finish()?.get_ref())
}
