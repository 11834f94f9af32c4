//! Checks the structure of Parquet's metadata (Thrift compact protocol) before the format's crate builds it. Sizes,
//! counts and nesting that the bytes do not justify would exhaust memory or the stack there, which no error can report.

/// Deepest nesting of structures and lists, and of groups of columns. The format's own structures need fewer than 10
/// levels.
const DEEPEST: usize = 64;

/// Type codes of values.
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Reasons for refusing a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The bytes end inside the structure.
    Short,
    Malformed,
}

type Checked<T> = Result<T, Fault>;

/// Sizes in the header of a page, in bytes and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PageSizes {
    pub uncompressed: i64,
    pub compressed: i64,
}

/// Returns the sizes in the page header at the start of `bytes`.
pub(super) fn page_sizes(bytes: &[u8]) -> Checked<PageSizes> {
    let mut sizes = PageSizes::default();
    let mut cursor = Cursor { bytes };
    cursor.structure(0, &mut |cursor, id, kind| match (id, kind) {
        (2, I32) => cursor.signed().map(|size| sizes.uncompressed = size).map(|()| true),
        (3, I32) => cursor.signed().map(|size| sizes.compressed = size).map(|()| true),
        // The format's crate would accept a number of any type here.
        (2 | 3, _) => Err(Fault::Malformed),
        _ => Ok(false),
    })?;
    Ok(sizes)
}

/// Checks the footer: its schema must be a tree of at most `most` nodes and at most [`DEEPEST`] levels.
pub(super) fn check_footer(bytes: &[u8], most: usize) -> Checked<()> {
    let mut cursor = Cursor { bytes };
    cursor.structure(0, &mut |cursor, id, kind| {
        if id != 2 {
            return Ok(false);
        }
        if kind != LIST {
            return Err(Fault::Malformed);
        }
        let (nodes, kind) = cursor.list()?;
        if kind != STRUCT || nodes > most {
            return Err(Fault::Malformed);
        }
        // Number of remaining children of each open group.
        let mut open: Vec<usize> = vec![];
        for node in 0..nodes {
            let mut children = 0;
            cursor.structure(1, &mut |cursor, id, kind| match (id, kind) {
                (5, I32) => cursor.signed().map(|n| children = n).map(|()| true),
                (5, _) => Err(Fault::Malformed),
                _ => Ok(false),
            })?;
            while open.last() == Some(&0) {
                open.pop();
            }
            match open.last_mut() {
                Some(left) => *left -= 1,
                None if node > 0 => return Err(Fault::Malformed),
                None => {}
            }
            let children = usize::try_from(children).map_err(|_| Fault::Malformed)?;
            open.push(children);
            if children > nodes || open.len() > DEEPEST {
                return Err(Fault::Malformed);
            }
        }
        if open.iter().any(|left| *left > 0) { Err(Fault::Malformed) } else { Ok(true) }
    })
}

/// Reads a stream of at most `most` whole numbers in the encoding DELTA_BINARY_PACKED at the start of `bytes`. Returns
/// the bytes after it, or `None` if there is no such stream.
pub(super) fn after_delta_stream(bytes: &[u8], most: u64) -> Option<&[u8]> {
    let mut cursor = Cursor { bytes };
    let mut next = || cursor.varint().ok();
    let (block, minis, count, _first) = (next()?, next()?, next()?, next()?);
    if count > most || minis == 0 || block % minis != 0 {
        return None;
    }
    let each = block / minis;
    let mut left = count.saturating_sub(1);
    while left > 0 && each > 0 {
        cursor.varint().ok()?;
        let widths = cursor.take(usize::try_from(minis).ok()?).ok()?;
        for width in widths {
            if left > 0 {
                let bits = u64::from(*width).checked_mul(each)?;
                // The last block may end after its last number.
                let size = usize::try_from(bits / 8).ok()?.min(cursor.bytes.len());
                cursor.take(size).ok()?;
                left = left.saturating_sub(each);
            }
        }
    }
    (left == 0).then_some(cursor.bytes)
}

struct Cursor<'a> {
    /// Remaining bytes.
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, size: usize) -> Checked<&'a [u8]> {
        let (taken, left) = self.bytes.split_at_checked(size).ok_or(Fault::Short)?;
        self.bytes = left;
        Ok(taken)
    }

    fn byte(&mut self) -> Checked<u8> {
        self.take(1).map(|taken| taken[0])
    }

    fn varint(&mut self) -> Checked<u64> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Fault::Malformed)
    }

    /// Reads a number in zigzag encoding.
    fn signed(&mut self) -> Checked<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads the head of a list: number and type of its elements. Each element takes at least one byte.
    fn list(&mut self) -> Checked<(usize, u8)> {
        let head = self.byte()?;
        let size = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        let size = usize::try_from(size).map_err(|_| Fault::Malformed)?;
        if size > self.bytes.len() { Err(Fault::Short) } else { Ok((size, head & 15)) }
    }

    /// Reads a structure. `each` reads a field by its number and type, or returns `false` to skip it.
    fn structure(&mut self, depth: usize, each: &mut dyn FnMut(&mut Self, i16, u8) -> Checked<bool>) -> Checked<()> {
        if depth > DEEPEST {
            return Err(Fault::Malformed);
        }
        let mut id = 0i16;
        loop {
            let head = self.byte()?;
            let kind = head & 15;
            if kind == 0 {
                return Ok(());
            }
            id = match head >> 4 {
                0 => self.signed()? as i16,
                step => id.wrapping_add(i16::from(step)),
            };
            if !each(self, id, kind)? {
                self.pass(kind, depth, false)?;
            }
        }
    }

    /// Skips a value. A boolean is stored in the head of a field, but takes a byte as an element of a list.
    fn pass(&mut self, kind: u8, depth: usize, element: bool) -> Checked<()> {
        if depth > DEEPEST {
            return Err(Fault::Malformed);
        }
        match kind {
            1 | 2 if !element => Ok(()),
            1 | 2 | BYTE => self.byte().map(|_| ()),
            I16 | I32 | I64 => self.varint().map(|_| ()),
            DOUBLE => self.take(8).map(|_| ()),
            BINARY => {
                let size = usize::try_from(self.varint()?).map_err(|_| Fault::Malformed)?;
                self.take(size).map(|_| ())
            }
            LIST | SET => {
                let (size, kind) = self.list()?;
                (0..size).try_for_each(|_| self.pass(kind, depth + 1, true))
            }
            MAP => {
                let size = self.varint()?;
                if size == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                (0..size).try_for_each(|_| {
                    self.pass(kinds >> 4, depth + 1, true)?;
                    self.pass(kinds & 15, depth + 1, true)
                })
            }
            STRUCT => self.structure(depth + 1, &mut |_, _, _| Ok(false)),
            _ => Err(Fault::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a footer with only a schema, whose nodes have the given numbers of children.
    fn footer(children: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x29, 0xf0 | STRUCT];
        // A count of two bytes, so that there is room for 16,383.
        bytes.extend([children.len() as u8 & 0x7f | 0x80, (children.len() >> 7) as u8]);
        // Field 5, a number in zigzag form, and the end of the structure.
        children.iter().for_each(|n| bytes.extend([0x55, 2 * n, 0]));
        bytes.push(0);
        bytes
    }

    #[test]
    fn a_schema_must_be_one_tree_of_bounded_depth() {
        assert_eq!(check_footer(&footer(&[2, 0, 1, 0]), 10), Ok(()));
        let malformed = Err(Fault::Malformed);
        assert_eq!(check_footer(&footer(&[2, 0]), 10), malformed);
        assert_eq!(check_footer(&footer(&[1, 0, 0]), 10), malformed);
        assert_eq!(check_footer(&footer(&[100, 0]), 10), malformed);
        assert_eq!(check_footer(&footer(&[2, 0, 1, 0]), 3), malformed);
        let chain = |depth: usize| [vec![1; depth - 1], vec![0]].concat();
        assert_eq!(check_footer(&footer(&chain(DEEPEST)), 20_000), Ok(()));
        assert_eq!(check_footer(&footer(&chain(DEEPEST + 1)), 20_000), malformed);
        assert_eq!(check_footer(&footer(&chain(16_000)), 20_000), malformed);
    }

    #[test]
    fn nested_structures_are_passed_to_a_bounded_depth() {
        // Field 1 of each structure is another structure.
        let nested = |depth: usize| [vec![0x10 | STRUCT; depth], vec![0; depth + 1]].concat();
        assert_eq!(page_sizes(&nested(10)), Ok(PageSizes::default()));
        assert_eq!(page_sizes(&nested(100_000)), Err(Fault::Malformed));
        // Lists in lists.
        assert_eq!(page_sizes(&[vec![0x19], vec![0x19; 100_000]].concat()), Err(Fault::Malformed));
    }

    #[test]
    fn page_sizes_are_found_and_claims_beyond_the_bytes_are_short() {
        // Type 0, sizes 300 and -1, then a string of five bytes in field 4.
        let bytes = [0x15, 0, 0x15, 0xd8, 0x04, 0x15, 1, 0x18, 5, b'a', b'b', b'c', b'd', b'e', 0];
        assert_eq!(page_sizes(&bytes), Ok(PageSizes { uncompressed: 300, compressed: -1 }));
        for end in 0..bytes.len() {
            assert_eq!(page_sizes(&bytes[..end]), Err(Fault::Short), "{end}");
        }
        assert_eq!(page_sizes(&[0x19, 0xf5, 0xff, 0xff, 0xff, 0x7f]), Err(Fault::Short));
    }

    #[test]
    fn delta_streams_end_where_their_numbers_do() {
        // Blocks of 128 in 4 pieces, 3 numbers, the first 0; one block: least step 0, widths, 32 numbers of 8 bits.
        let mut bytes = vec![0x80, 0x01, 4, 3, 0, 0, 8, 0, 0, 0];
        bytes.extend([7; 32]);
        bytes.extend(b"rest");
        assert_eq!(after_delta_stream(&bytes, 3), Some(&b"rest"[..]));
        assert_eq!(after_delta_stream(&bytes, 2), None);
        assert_eq!(after_delta_stream(&bytes[..8], 3), None);
        assert_eq!(after_delta_stream(&[0x80, 0x01, 0, 3, 0], 3), None);
        assert_eq!(after_delta_stream(&[0, 4, 3, 0, 0], 3), None);
    }
}
