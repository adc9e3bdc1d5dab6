//! Changes of a vault's file: bytes, pages and what stands in them.

use super::super::mutate::Random;

/// Bytes that mean something in headers, record formats and lengths.
const BYTES: &[u8] = &[0, 1, 2, 5, 0x0a, 0x0d, 0x7f, 0x80, 0x81, 0xfe, 0xff];

/// Numbers of four bytes that mean something as page numbers, counts and sizes.
const NUMBERS: &[u32] = &[0, 1, 2, 3, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x0001_0000, 0x00ff_ffff];

/// A vault's file as pages.
pub(super) struct Pages<'b> {
    bytes: &'b mut Vec<u8>,
    size: usize,
}

impl<'b> Pages<'b> {
    pub(super) fn new(bytes: &'b mut Vec<u8>) -> Self {
        let stated = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
        let size = if stated == 1 { 65_536 } else { stated.max(512) };
        Self { bytes, size }
    }

    fn count(&self) -> usize {
        self.bytes.len() / self.size
    }

    /// Where a page begins. The first begins with the header of the file.
    fn start(&self, page: usize) -> usize {
        page * self.size
    }

    fn page(&self, random: &mut Random) -> usize {
        random.below(self.count())
    }

    /// Where the header of the b-tree of `page` is.
    fn header(&self, page: usize) -> usize {
        self.start(page) + if page == 0 { 100 } else { 0 }
    }

    fn two(&self, at: usize) -> usize {
        match self.bytes.get(at..at + 2) {
            Some(bytes) => usize::from(u16::from_be_bytes([bytes[0], bytes[1]])),
            None => 0,
        }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// Where the cells of a page stand, and where the pointers to them do; nothing if it is no page of a b-tree.
    fn cells(&self, page: usize) -> Vec<(usize, usize)> {
        let header = self.header(page);
        let pointers = match self.bytes.get(header) {
            Some(0x02 | 0x05) => header + 12,
            Some(0x0a | 0x0d) => header + 8,
            _ => return Vec::new(),
        };
        let count = self.two(header + 3).min(self.size / 4);
        let pointers = (0..count).map(|cell| pointers + 2 * cell);
        pointers.map(|pointer| (pointer, self.start(page) + self.two(pointer))).collect()
    }

    /// One change, and a description of it.
    pub(super) fn change(&mut self, random: &mut Random) -> String {
        match random.below(12) {
            0 => self.flip(random),
            1 => self.replace_page(random),
            2 => self.cut(random),
            3 => self.change_file_header(random),
            4 => self.change_page_header(random),
            5 => self.change_pointer(random),
            6 => self.lead_elsewhere(random),
            7 => self.swap_cells(random),
            _ => self.change_cell(random),
        }
    }

    fn flip(&mut self, random: &mut Random) -> String {
        let at = random.below(self.bytes.len());
        let bit = random.below(8);
        self.bytes[at] ^= 1 << bit;
        format!("bit {bit} of byte {at} is flipped")
    }

    fn replace_page(&mut self, random: &mut Random) -> String {
        let (one, other) = (self.page(random), self.page(random));
        let (from, to) = (self.start(one), self.start(other));
        match random.below(4) {
            0 => {
                for at in 0..self.size {
                    self.bytes.swap(from + at, to + at);
                }
                format!("pages {one} and {other} are exchanged")
            }
            1 => {
                self.bytes.copy_within(from..from + self.size, to);
                format!("page {other} is a copy of page {one}")
            }
            2 => {
                self.bytes[to..to + self.size].fill(0);
                format!("page {other} is zeros")
            }
            _ => {
                for at in to..to + self.size {
                    self.bytes[at] = u8::try_from(random.below(256)).unwrap();
                }
                format!("page {other} is noise")
            }
        }
    }

    fn cut(&mut self, random: &mut Random) -> String {
        let length = match random.below(3) {
            0 => random.below(self.bytes.len()),
            1 => self.page(random) * self.size,
            _ => {
                let more = random.below(3 * self.size);
                self.bytes.resize(self.bytes.len() + more, 0x0d);
                return format!("{more} bytes more");
            }
        };
        // What is empty is no vault.
        let length = length.max(100);
        self.bytes.truncate(length);
        format!("cut off at {length}")
    }

    fn change_file_header(&mut self, random: &mut Random) -> String {
        let at = 4 * random.below(25);
        if at >= 24 {
            let number = *random.of(NUMBERS);
            self.put(at, &number.to_be_bytes());
            return format!("the header has {number} at {at}");
        }
        let at = 16 + random.below(8);
        let byte = *random.of(BYTES);
        self.put(at, &[byte]);
        format!("the header has the byte {byte} at {at}")
    }

    fn change_page_header(&mut self, random: &mut Random) -> String {
        let page = self.page(random);
        let at = random.below(12);
        let byte =
            if random.below(2) == 0 { *random.of(BYTES) } else { u8::try_from(random.below(256)).unwrap() };
        self.put(self.header(page) + at, &[byte]);
        format!("the header of page {page} has the byte {byte} at {at}")
    }

    fn change_pointer(&mut self, random: &mut Random) -> String {
        let page = self.page(random);
        let cells = self.cells(page);
        if cells.is_empty() {
            return self.flip(random);
        }
        let (pointer, _) = *random.of(&cells);
        let to = match random.below(4) {
            0 => self.two(random.of(&cells).0),
            1 => random.below(self.size),
            2 => self.size - 1 - random.below(8),
            _ => random.below(120),
        };
        self.put(pointer, &u16::try_from(to).unwrap_or(u16::MAX).to_be_bytes());
        format!("a pointer at {pointer} in page {page} leads to {to}")
    }

    /// A page number inside a page, of a child or the next page of a long row, becomes another.
    fn lead_elsewhere(&mut self, random: &mut Random) -> String {
        let interior: Vec<usize> = (0..self.count())
            .filter(|page| matches!(self.bytes.get(self.header(*page)), Some(0x02 | 0x05)))
            .collect();
        let to = match random.below(3) {
            0 => *random.of(NUMBERS),
            _ => u32::try_from(1 + random.below(self.count())).unwrap(),
        };
        let at = if interior.is_empty() || random.below(3) == 0 {
            // The first bytes of pages that continue rows, and of those in the list of free ones.
            self.start(self.page(random))
        } else {
            let page = *random.of(&interior);
            let cells = self.cells(page);
            match cells.get(random.below(cells.len() + 1)) {
                Some((_, cell)) => *cell,
                None => self.header(page) + 8,
            }
        };
        self.put(at, &to.to_be_bytes());
        format!("at {at}, page {to} is named")
    }

    fn swap_cells(&mut self, random: &mut Random) -> String {
        let page = self.page(random);
        let cells = self.cells(page);
        if cells.len() < 2 {
            return self.flip(random);
        }
        let ((one, _), (other, _)) = (*random.of(&cells), *random.of(&cells));
        let (first, second) = (self.two(one), self.two(other));
        self.put(one, &u16::try_from(second).unwrap().to_be_bytes());
        self.put(other, &u16::try_from(first).unwrap().to_be_bytes());
        format!("the cells at {one} and {other} are exchanged")
    }

    /// The beginning of a cell: its size, row number, sizes of values.
    fn change_cell(&mut self, random: &mut Random) -> String {
        let page = self.page(random);
        let cells = self.cells(page);
        if cells.is_empty() {
            return self.flip(random);
        }
        let length = if random.below(2) == 0 { 6 } else { 40 };
        let at = random.of(&cells).1 + random.below(length);
        if random.below(8) == 0 {
            self.put(at, &[0xff; 9]);
            return format!("at {at}, a number is as long as it can be");
        }
        let byte = match random.below(3) {
            0 => *random.of(BYTES),
            1 => self.bytes.get(at).map_or(0, |byte| byte.wrapping_add(1)),
            _ => self.bytes.get(at).map_or(0, |byte| byte ^ (1 << random.below(8))),
        };
        self.put(at, &[byte]);
        format!("the byte at {at} in a cell of page {page} is {byte}")
    }
}
