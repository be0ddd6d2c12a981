//! The memory that CPython's structures are read from.

/// An address in the memory of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl Address {
    /// The address some bytes further on.
    #[must_use]
    pub fn plus(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }

    /// The address of a field of the structure that begins here.
    #[must_use]
    pub fn field(self, offset: usize) -> Self {
        self.plus(offset as u64)
    }

    /// Whether it points nowhere.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// No structure or string is longer; whatever claims to be is something else.
pub(crate) const LONGEST: usize = 1 << 20;

/// Memory that may change or vanish at any moment: a bad address is an error, never a crash.
pub(crate) trait Memory {
    /// Why memory could not be read.
    type Error;

    /// Fills `into` from an address.
    fn read(&self, address: Address, into: &mut [u8]) -> Result<(), Self::Error>;

    /// The error for memory that does not hold what it should.
    fn malformed(&self, what: &'static str) -> Self::Error;

    /// All bytes of a stretch.
    fn bytes(&self, address: Address, length: usize) -> Result<Vec<u8>, Self::Error> {
        if length > LONGEST {
            return Err(self.malformed("a length"));
        }
        let mut bytes = vec![0; length];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    /// The bytes of a stretch whose end may be missing where memory was copied.
    fn bytes_up_to(&self, address: Address, length: usize) -> Result<Vec<u8>, Self::Error> {
        self.bytes(address, length)
    }

    /// A number of eight bytes.
    fn word(&self, address: Address) -> Result<u64, Self::Error> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A pointer.
    fn pointer(&self, address: Address) -> Result<Address, Self::Error> {
        self.word(address).map(Address)
    }

    /// A C string, cut where it is too long.
    fn c_string(&self, address: Address) -> Result<String, Self::Error> {
        const LONGEST_NAME: u64 = 256;
        // Not beyond the page, which might be the last.
        let to_page = 4096 - address.0 % 4096;
        let mut bytes = self.bytes(address, to_page.min(LONGEST_NAME) as usize)?;
        if !bytes.contains(&0) && to_page < LONGEST_NAME {
            bytes.extend(self.bytes(address.plus(to_page), (LONGEST_NAME - to_page) as usize)?);
        }
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

/// A number of eight bytes in a structure that was read; 0 beyond its end.
pub(crate) fn word_at(bytes: &[u8], offset: usize) -> u64 {
    bytes.get(offset..offset + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// A number of four bytes in a structure that was read; 0 beyond its end.
pub(crate) fn half_at(bytes: &[u8], offset: usize) -> u32 {
    bytes.get(offset..offset + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}
