//! How far a followed file was read, over rotations.

use super::NotThere;

/// Longest first line of an answer; of a longer one the beginning counts.
const HEADER_BYTES: usize = 1024;

/// How far a file was read. What `tail.sh` prints passes through it.
#[derive(Debug, Clone, Default)]
pub(super) struct FilePosition {
    /// The answer's first line as far as it has come; `None` once it is read.
    header: Option<Vec<u8>>,
    /// Inode of the file in which the bytes are counted.
    inode: Option<String>,
    /// Byte after the last byte read.
    read: u64,
    /// Byte after the last whole line; `None` before the first answer.
    whole: Option<u64>,
    /// The rest of a line whose start is not shown is dropped.
    skip: bool,
    /// The file that comes when the rest of the one before it has.
    next: Option<Next>,
    /// Why bytes are missing before what comes now, until it was told.
    pub(super) why: Option<&'static str>,
    /// That there is nothing to read, until it was told.
    pub(super) absent: Option<NotThere>,
    /// The byte of the file at which it was taken up for the first time.
    pub(super) first: Option<u64>,
}

/// A file that has taken the place of the one that is read to its end.
#[derive(Debug, Clone)]
struct Next {
    /// Bytes of the earlier file that are still to come.
    rest: u64,
    inode: String,
    from: u64,
}

impl FilePosition {
    /// The command is given anew: its answer begins with a line for us.
    pub(super) fn begin(&mut self) {
        self.header = Some(Vec::new());
        self.next = None;
        self.skip = false;
    }

    /// The byte to go on at and its file's inode, as `tail.sh` takes them.
    pub(super) fn place(&self) -> (String, String) {
        let none = || "-".to_owned();
        match (&self.whole, &self.inode) {
            (Some(byte), Some(inode)) => (byte.to_string(), inode.clone()),
            (_, _) => (none(), none()),
        }
    }

    /// The bytes that belong to the log.
    pub(super) fn content<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        while let Some(header) = &mut self.header {
            let end = bytes.iter().position(|b| *b == b'\n');
            let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |n| n + 1));
            let room = HEADER_BYTES.saturating_sub(header.len());
            header.extend(line.iter().take(room));
            if end.is_none() {
                return &[];
            }
            let text = String::from_utf8_lossy(header).into_owned();
            header.clear();
            bytes = rest;
            if text.starts_with("@@ from ") {
                self.header = None;
                self.answer(&text);
            } else {
                // What else comes before it is no log: that there is none, or what Docker says in its place.
                self.absent = Some(NotThere::of(text.trim_end()));
            }
        }
        self.count(bytes);
        if self.skip {
            let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
                return &[];
            };
            self.skip = false;
            bytes = bytes.get(end + 1..).unwrap_or_default();
        }
        bytes
    }

    /// Whether the answer's first line was read.
    pub(super) fn begun(&self) -> bool {
        self.header.is_none()
    }

    /// Takes the first line of an answer.
    fn answer(&mut self, line: &str) {
        let mut words = line.strip_prefix("@@ from ").unwrap_or_default().split_whitespace();
        let mut number = || words.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        let (from, inode, rest): (u64, u64, u64) = (number(), number(), number());
        let inode = inode.to_string();
        self.why = match words.next() {
            Some("cut") => Some("… the log file was cut here: lines before may be missing, or come twice"),
            Some("anew") => {
                Some("… another file took the log file's place: the last lines of the one before may be missing here")
            }
            Some(_) | None => None,
        };
        self.first.get_or_insert(from);
        if rest > 0 {
            self.read = self.whole.unwrap_or(0);
            self.next = Some(Next { rest, inode, from });
            return;
        }
        // Where the file is taken up at a byte that is not ours, a line begins anywhere.
        self.skip = from > 0 && (self.whole, self.inode.as_ref()) != (Some(from), Some(&inode));
        self.turn(inode, from);
    }

    /// Goes to a byte of a file.
    fn turn(&mut self, inode: String, from: u64) {
        self.inode = Some(inode);
        self.read = from;
        self.whole = Some(from);
    }

    /// Counts bytes that came.
    fn count(&mut self, bytes: &[u8]) {
        let mut bytes = bytes;
        if let Some(next) = &mut self.next {
            let rest = usize::try_from(next.rest).unwrap_or(usize::MAX);
            let (before, after) = bytes.split_at(rest.min(bytes.len()));
            next.rest -= before.len() as u64;
            bytes = match next.rest {
                0 => {
                    let (inode, from) = (std::mem::take(&mut next.inode), next.from);
                    self.next = None;
                    self.turn(inode, from);
                    after
                }
                _ => before,
            };
        }
        self.read += bytes.len() as u64;
        if let Some(last) = bytes.iter().rposition(|b| *b == b'\n') {
            self.whole = Some(self.read - (bytes.len() - last - 1) as u64);
        }
    }

    /// So many bytes came and were lost: what follows them counts as the start of a line.
    pub(super) fn lost(&mut self, bytes: u64) {
        // Before the answer's first line there is no position to move.
        if self.header.is_some() {
            return;
        }
        let mut bytes = bytes;
        if let Some(next) = &mut self.next {
            let before = next.rest.min(bytes);
            next.rest -= before;
            if next.rest == 0 {
                bytes -= before;
                let (inode, from) = (std::mem::take(&mut next.inode), next.from);
                self.next = None;
                self.turn(inode, from);
            }
        }
        self.read = self.read.saturating_add(bytes);
        self.whole = Some(self.read);
    }
}
