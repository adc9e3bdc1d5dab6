//! Writes the seeds of every target to `fuzz/seeds`.

use std::fs;
use std::path::Path;

fn main() -> std::io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.parent().unwrap_or(here);
    for (target, seeds) in runvault_fuzz::seeds(root) {
        let directory = here.join("seeds").join(target);
        fs::create_dir_all(&directory)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(directory.join(format!("{number:03}")), seed)?;
        }
    }
    Ok(())
}
