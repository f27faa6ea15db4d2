//! Inputs made of others: cut, repeated, joined, with bytes and numbers changed.

/// Random numbers that are the same with each run from the same start (xorshift64*, Vigna 2016).
pub struct Random(u64);

impl Random {
    pub fn new(start: u64) -> Self {
        Self(start.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `limit`; 0 where that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(number).unwrap_or(0) % limit.max(1)
    }
}

/// Parts that readers trip over: ends, escapes, limits of numbers, broken and wide characters, words for nothing.
const PARTS: [&[u8]; 34] = [
    b"",
    b"\0",
    b"\n",
    b"\r",
    b"\r\n",
    b"\t",
    b" ",
    b"\"",
    b"'",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"=",
    b"|",
    b"-1",
    b"0",
    b"18446744073709551616",
    b"1e400",
    b"NaN",
    b"[N/A]",
    b"null",
    b"\xff",
    b"\xe2\x96",
    "█".as_bytes(),
    "é\u{301}".as_bytes(),
    "\u{202e}".as_bytes(),
    b"\x1b[",
    b"\x1b]0;",
    b"@@ ",
    b"\n@= ",
];

/// One input, at most `longest` bytes long.
pub fn of(seeds: &[Vec<u8>], longest: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = part(seeds, longest, random);
    for _ in 0..=random.below(4) {
        step(&mut bytes, seeds, random);
    }
    bytes.truncate(longest);
    bytes
}

/// A part of a seed, often its whole.
fn part(seeds: &[Vec<u8>], longest: usize, random: &mut Random) -> Vec<u8> {
    let Some(seed) = seeds.get(random.below(seeds.len())) else {
        return Vec::new();
    };
    if seed.len() <= longest && random.below(2) == 0 {
        return seed.clone();
    }
    let from = random.below(seed.len());
    let until = from + random.below(longest.min(seed.len() - from) + 1);
    seed.get(from..until).unwrap_or_default().to_vec()
}

fn step(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let until = (at + random.below(16)).min(bytes.len());
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => drop(bytes.drain(..at)),
        2 => drop(bytes.drain(at..until)),
        3 => {
            let again = bytes.get(at..until).unwrap_or_default().repeat(1 + random.below(40));
            drop(bytes.splice(at..at, again));
        }
        4 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = u8::try_from(random.below(256)).unwrap_or(0);
            }
        }
        5 => {
            let other = part(seeds, 256, random);
            drop(bytes.splice(at..until, other));
        }
        6 => number(bytes, at, random),
        _ => {
            let known = PARTS.get(random.below(PARTS.len())).copied().unwrap_or_default();
            drop(bytes.splice(at..until, known.iter().copied()));
        }
    }
}

/// Puts another number in the place of the next one.
fn number(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let digit = |b: &u8| b.is_ascii_digit();
    let Some(from) = bytes.iter().skip(at).position(digit).map(|n| n + at) else {
        return;
    };
    let until = bytes
        .iter()
        .skip(from)
        .position(|b| !digit(b))
        .map_or(bytes.len(), |n| n + from);
    let other: [&[u8]; 8] = [
        b"",
        b"0",
        b"-1",
        b"4294967296",
        b"9223372036854775808",
        b"99999999999999999999999",
        b"0.1",
        b"1e309",
    ];
    let other = other.get(random.below(other.len())).copied().unwrap_or_default();
    drop(bytes.splice(from..until, other.iter().copied()));
}
