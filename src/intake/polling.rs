//! Polling of directories for files that appeared or changed and have since settled.
//!
//! Writers do not signal when a file is complete. But a file with the same size and time for a while most probably is
//! complete; if not, it will change and settle again.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::file::{self, is_member};
use super::inputs::{InputItem, open_found};
use super::tree::{self, FileKind, FileState, FoundPath, OpenDir};
use super::verdict::SourceError;
use crate::artifact::Kind;

/// A watcher that scans directories and remembers their state. Every scan queries the state of each file once, and
/// reads only the beginnings of files that make a directory a pack.
#[derive(Debug)]
pub struct PollingWatcher {
    roots: Vec<WatchedDirectory>,
    settle: Duration,
    kind: Option<Kind>,
    ignored: Vec<PathBuf>,
    /// Whether files that an interrupted move has set aside are recovered.
    recovers: bool,
    scans: u64,
    seen: HashMap<PathBuf, WatchedFileState>,
    directories: HashMap<PathBuf, VisitedDirectory>,
}

/// A directory that is watched.
#[derive(Debug)]
struct WatchedDirectory {
    path: PathBuf,
    /// Whether it was a link when it was named: only then is a link followed.
    is_link: bool,
    /// Whether it need not exist.
    is_optional: bool,
    /// Whether only the files in the directory itself are watched.
    is_shallow: bool,
}

/// The result of a scan.
#[derive(Debug, Default)]
pub struct Scan {
    /// Items that have settled and have not been processed, oldest first.
    pub settled: Vec<(PathBuf, InputItem)>,
    /// The number of files and packs that have not settled yet.
    pub unsettled: usize,
    /// The number of these with times in the future, so that only another scan shows whether they have settled.
    pub timeless: usize,
    /// Errors of the scan.
    pub errors: Vec<SourceError>,
}

/// The state of a file or pack at the last scan.
#[derive(Debug)]
struct WatchedFileState {
    stamp: FileStamp,
    /// The time at which it has settled, unless it changes.
    due: Instant,
    is_done: bool,
    /// The number of the last scan that found it.
    scan: u64,
}

/// A directory that was entered, and the result.
#[derive(Debug)]
struct VisitedDirectory {
    stamp: FileStamp,
    kind: Option<Kind>,
    scan: u64,
}

/// The results collected during a scan.
#[derive(Default)]
struct ScanCollector {
    settled: Vec<(FileStamp, PathBuf, InputItem)>,
    unsettled: usize,
    timeless: usize,
}

/// The state that changes when a file is written or replaced. For a pack, that of all its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FileStamp {
    size: u64,
    modified: Option<SystemTime>,
    number: u64,
}

/// A file in a directory, or a pack.
struct ScannedFile {
    path: FoundPath,
    stamp: FileStamp,
    /// The time since the last write at the scan; `None` if its times are in the future.
    quiet: Option<Duration>,
}

impl WatchedDirectory {
    fn new(path: PathBuf) -> Self {
        let plain: PathBuf = path.components().collect();
        let is_link = plain.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        Self { path, is_link, is_optional: false, is_shallow: false }
    }

    /// Opens the directory. Fails if it has been replaced by a link.
    fn open(&self) -> io::Result<OpenDir> {
        if self.is_link {
            return OpenDir::open(&self.path);
        }
        OpenDir::open_no_follow(&self.path).map_err(|error| {
            let replaced = tree::is_no_directory(&error);
            if replaced { io::Error::other("it was replaced by a link or a file") } else { error }
        })
    }
}

impl PollingWatcher {
    /// Creates a watcher of everything in `roots`, which are directories. A file has settled when it has been unchanged
    /// for the time `settle`.
    #[must_use]
    pub fn new(roots: Vec<PathBuf>, settle: Duration) -> Self {
        Self {
            roots: roots.into_iter().map(WatchedDirectory::new).collect(),
            settle,
            kind: None,
            ignored: Vec::new(),
            recovers: false,
            scans: 0,
            seen: HashMap::new(),
            directories: HashMap::new(),
        }
    }

    /// Restricts the watcher to artifacts of one kind, like [`Inputs::with_kind`](super::Inputs::with_kind).
    #[must_use]
    pub fn with_kind(self, kind: Option<Kind>) -> Self {
        Self { kind, ..self }
    }

    /// Watches these directories too, whenever they exist.
    #[must_use]
    pub fn with_optional(self, roots: Vec<PathBuf>) -> Self {
        self.with_roots(roots, false)
    }

    /// Watches the files in these directories too, whenever they exist, but none below them.
    #[must_use]
    pub fn with_files_of(self, roots: Vec<PathBuf>) -> Self {
        self.with_roots(roots, true)
    }

    fn with_roots(mut self, roots: Vec<PathBuf>, is_shallow: bool) -> Self {
        let root = |path| WatchedDirectory { is_optional: true, is_shallow, ..WatchedDirectory::new(path) };
        self.roots.extend(roots.into_iter().map(root));
        self
    }

    /// Ignores these files, such as those of the vault itself.
    #[must_use]
    pub fn without(self, ignored: Vec<PathBuf>) -> Self {
        Self { ignored, ..self }
    }

    /// Recovers the files that a killed process was moving, like [`Inputs::recovering`](super::Inputs::recovering).
    #[must_use]
    pub fn recovering(self, recovers: bool) -> Self {
        Self { recovers, ..self }
    }

    /// Scans all directories. A file that exists at the first scan and was last written long enough ago has already
    /// settled.
    pub fn scan(&mut self) -> Scan {
        self.scans += 1;
        let (mut scan, mut found) = (Scan::default(), ScanCollector::default());
        let mut waiting: Vec<FoundPath> = Vec::new();
        for number in 0..self.roots.len() {
            let Some(root) = self.roots.get(number) else { break };
            let (path, is_optional, is_shallow) = (root.path.clone(), root.is_optional, root.is_shallow);
            let mut entered = root
                .open()
                .map_err(SourceError::at(&path))
                .and_then(|opened| self.enter(&path.into(), &opened, &mut found));
            loop {
                match entered {
                    Ok(_) if is_shallow => {}
                    Ok(further) => waiting.extend(further),
                    Err(error) if is_optional && error.source.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => scan.errors.push(error),
                }
                let Some(path) = waiting.pop() else { break };
                entered = self.enter_found(&path, &mut found);
            }
        }
        let scans = self.scans;
        self.seen.retain(|_, seen| seen.scan == scans);
        self.directories.retain(|_, entered| entered.scan == scans);
        let ScanCollector { mut settled, unsettled, timeless } = found;
        settled.sort_by_cached_key(|(stamp, path, _): &(FileStamp, PathBuf, InputItem)| {
            (stamp.modified, path.clone())
        });
        scan.settled = settled.into_iter().map(|(_, path, item)| (path, item)).collect();
        (scan.unsettled, scan.timeless) = (unsettled, timeless);
        scan
    }

    /// Marks the item at `path` as processed in its state at the last scan. It is found again when it changes.
    pub fn done(&mut self, path: &Path) {
        if let Some(seen) = self.seen.get_mut(path) {
            seen.is_done = true;
        }
    }

    /// Marks all items found so far as processed.
    pub fn all_done(&mut self) {
        self.seen.values_mut().for_each(|seen| seen.is_done = true);
    }

    /// Enters a directory that was found in another one. Files may be removed concurrently.
    fn enter_found(
        &mut self,
        path: &FoundPath,
        found: &mut ScanCollector,
    ) -> Result<Vec<FoundPath>, SourceError> {
        let entered = open_found(path).map_err(SourceError::at(path));
        match entered.and_then(|opened| self.enter(path, &opened, found)) {
            Err(error) if error.source.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            entered => entered,
        }
    }

    /// Scans a directory and returns its subdirectories to be entered.
    fn enter(
        &mut self,
        path: &FoundPath,
        opened: &OpenDir,
        found: &mut ScanCollector,
    ) -> Result<Vec<FoundPath>, SourceError> {
        let now = tree::now();
        let (mut files, mut further) = (Vec::new(), Vec::new());
        let entries = opened.all_entries(self.recovers).map_err(SourceError::at(path))?;
        for entry in &entries {
            let path = FoundPath::within(opened, &entry.name);
            match entry.kind {
                FileKind::Directory => further.push(path),
                FileKind::File => match opened.state(&entry.name) {
                    Ok(state) => {
                        files.push(ScannedFile {
                            stamp: FileStamp::from_state(&state),
                            quiet: state.quiet(now),
                            path,
                        });
                    }
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(SourceError::at(&path)(error)),
                },
                FileKind::Link | FileKind::Other => {}
            }
        }
        files.retain(|file| !self.ignored.iter().any(|ignored| **ignored == *file.path));
        if let Some((kind, stamp)) = self.pack(opened, &entries, &files) {
            let item = |path: FoundPath| InputItem::Directory { path, kind, named: false };
            // It has been unchanged for as long as the file that was written last.
            let quiet = files.iter().map(|file| file.quiet).min().unwrap_or_default();
            self.observe(ScannedFile { path: path.clone(), stamp, quiet }, item, found);
            return Ok(Vec::new());
        }
        for file in files {
            self.observe(file, InputItem::Found, found);
        }
        Ok(further)
    }

    /// Returns the kind and state of a directory that is an artifact.
    fn pack(
        &mut self,
        opened: &OpenDir,
        entries: &[tree::OpenDirEntry],
        files: &[ScannedFile],
    ) -> Option<(Kind, FileStamp)> {
        let is_candidate =
            |file: &ScannedFile| file.path.file_name().and_then(|name| name.to_str()).is_some_and(is_member);
        if !self.kind.is_none_or(Kind::is_of_directories) || !files.iter().any(is_candidate) {
            return None;
        }
        let stamp = FileStamp::from_files(files, entries.len());
        let known = self.directories.get(opened.path()).filter(|entered| entered.stamp == stamp);
        // Examining files in every scan would cost more than all the rest.
        let kind = known.map_or_else(|| file::recognize_directory(opened, entries), |entered| entered.kind);
        self.directories.insert(opened.path().to_owned(), VisitedDirectory { stamp, kind, scan: self.scans });
        kind.map(|kind| (kind, stamp))
    }

    fn observe(
        &mut self,
        file: ScannedFile,
        item: impl FnOnce(FoundPath) -> InputItem,
        found: &mut ScanCollector,
    ) {
        let ScannedFile { path, stamp, quiet } = file;
        let now = Instant::now();
        let is_first = self.scans == 1;
        // Before the first scan nothing was observed, so the file times are used. Times in the future are ignored.
        let known = if is_first { quiet.unwrap_or_default() } else { Duration::ZERO };
        let due = now + self.settle.saturating_sub(known);
        let fresh = || WatchedFileState { stamp, due, is_done: false, scan: 0 };
        let seen = self.seen.entry(path.to_path_buf()).or_insert_with(fresh);
        if seen.stamp != stamp {
            *seen = WatchedFileState { stamp, due: now + self.settle, is_done: false, scan: 0 };
        }
        // One watched directory may be inside another.
        if seen.scan == self.scans {
            return;
        }
        seen.scan = self.scans;
        match (seen.is_done, seen.due <= now) {
            (true, _) => {}
            (false, false) => {
                found.unsettled += 1;
                found.timeless += usize::from(quiet.is_none());
            }
            (false, true) => found.settled.push((stamp, path.to_path_buf(), item(path))),
        }
    }
}

impl FileStamp {
    fn from_state(state: &FileState) -> Self {
        let mut hasher = DefaultHasher::new();
        state.id.hash(&mut hasher);
        Self { size: state.size, modified: state.modified, number: hasher.finish() }
    }

    /// Creates the stamp of all files of a directory with this number of entries.
    fn from_files(files: &[ScannedFile], entries: usize) -> Self {
        let mut sorted: Vec<&ScannedFile> = files.iter().collect();
        sorted.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let mut hasher = DefaultHasher::new();
        entries.hash(&mut hasher);
        for file in sorted {
            (&*file.path, file.stamp).hash(&mut hasher);
        }
        let size = files.iter().map(|file| file.stamp.size).sum();
        let modified = files.iter().filter_map(|file| file.stamp.modified).max();
        Self { size, modified, number: hasher.finish() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SETTLE: Duration = Duration::from_millis(60);

    fn watched() -> (tempfile::TempDir, PollingWatcher) {
        let directory = tempfile::tempdir().unwrap();
        let watcher = PollingWatcher::new(vec![directory.path().to_owned()], SETTLE);
        (directory, watcher)
    }

    fn names(scan: &Scan) -> Vec<String> {
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        scan.settled.iter().map(|(path, _)| name(path)).collect()
    }

    #[test]
    fn a_file_is_found_once_it_stays_as_it_is() {
        let (directory, mut watcher) = watched();
        watcher.scan();
        let path = directory.path().join("a.json");
        fs::write(&path, "{").unwrap();
        let scan = watcher.scan();
        assert_eq!((scan.settled.len(), scan.unsettled), (0, 1));
        fs::write(&path, "{}").unwrap();
        std::thread::sleep(SETTLE * 2);
        // It changed since the last scan, so its quiet period starts again.
        assert_eq!(watcher.scan().settled.len(), 0);
        std::thread::sleep(SETTLE * 2);
        assert_eq!(names(&watcher.scan()), ["a.json"]);
        // Until it is marked as done.
        assert_eq!(names(&watcher.scan()), ["a.json"]);
        watcher.done(&path);
        assert!(watcher.scan().settled.is_empty());
        fs::write(&path, "{} ").unwrap();
        watcher.scan();
        std::thread::sleep(SETTLE * 2);
        assert_eq!(names(&watcher.scan()), ["a.json"]);
    }

    #[test]
    fn what_is_old_at_the_first_scan_has_settled() {
        let (directory, mut watcher) = watched();
        fs::create_dir(directory.path().join("d")).unwrap();
        fs::write(directory.path().join("z.json"), "1").unwrap();
        std::thread::sleep(SETTLE * 2);
        fs::write(directory.path().join("d/a.json"), "2").unwrap();
        let scan = watcher.scan();
        assert_eq!((names(&scan), scan.unsettled), (vec!["z.json".to_owned()], 1));
        std::thread::sleep(SETTLE * 2);
        assert_eq!(names(&watcher.scan()), ["z.json", "a.json"], "oldest first");
        watcher.all_done();
        assert!(watcher.scan().settled.is_empty());
    }

    #[test]
    fn a_pack_settles_as_a_whole() {
        let (directory, mut watcher) = watched();
        let pack = directory.path().join("p");
        fs::create_dir(&pack).unwrap();
        watcher.scan();
        let run = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pack/run.json")).unwrap();
        fs::write(pack.join("run.json"), run).unwrap();
        watcher.scan();
        std::thread::sleep(SETTLE / 2);
        fs::write(pack.join("meta.json"), "{}").unwrap();
        watcher.scan();
        std::thread::sleep(SETTLE * 2 / 3);
        assert!(watcher.scan().settled.is_empty(), "run.json alone would have settled");
        std::thread::sleep(SETTLE);
        let scan = watcher.scan();
        assert!(matches!(scan.settled.as_slice(), [(path, InputItem::Directory { .. })] if *path == pack));
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let (directory, mut watcher) = watched();
        let path = directory.path().join("a.json");
        fs::write(&path, "{}").unwrap();
        watcher.scan();
        fs::remove_file(&path).unwrap();
        assert_eq!(watcher.scan().unsettled, 0);
        assert!(watcher.seen.is_empty());
        drop(directory);
        let scan = watcher.scan();
        assert_eq!(scan.errors.len(), 1);
    }

    #[test]
    fn what_is_watched_twice_is_found_once() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("d");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("a.json"), "{}").unwrap();
        let mut watcher = PollingWatcher::new(vec![directory.path().to_owned(), inner], Duration::ZERO);
        assert_eq!(names(&watcher.scan()), ["a.json"]);
    }

    #[test]
    fn what_is_ignored_is_not_found() {
        let (directory, watcher) = watched();
        let path = directory.path().join("v.vault");
        let mut watcher = watcher.without(vec![path.clone()]);
        fs::write(path, "").unwrap();
        assert_eq!(watcher.scan().unsettled, 0);
    }
}
