//! How the commands that look at a process are told which: its number, as py-spy takes it.

/// A process number, in decimal or hexadecimal (`0x4d2`).
pub(crate) fn process_number(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number = digits.map_or_else(|| text.parse(), |digits| u32::from_str_radix(digits, 16));
    number.map_err(|_| "not the number of a process".to_owned())
}

#[cfg(test)]
mod tests {
    use super::process_number;

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(process_number("1234"), Ok(1234));
        assert_eq!(process_number("0x4d2"), Ok(1234));
        assert_eq!(process_number("0X4D2"), Ok(1234));
        for wrong in ["", "0x", "-1", "4d2", "0x100000000", "1 2"] {
            assert!(process_number(wrong).is_err(), "{wrong}");
        }
    }
}
