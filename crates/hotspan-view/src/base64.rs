//! Bytes as text, for the page that has its data in it.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes in base 64, padded.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let three = [group[0], group.get(1).copied().unwrap_or(0), group.get(2).copied().unwrap_or(0)];
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for letter in 0..4 {
            let code = (bits >> (18 - 6 * letter)) & 63;
            text.push(if letter > group.len() { '=' } else { LETTERS[code as usize] as char });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn as_the_standard_has_it() {
        let known = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, text) in known.iter().enumerate() {
            assert_eq!(base64(&b"foobar"[..length]), *text);
        }
    }
}
