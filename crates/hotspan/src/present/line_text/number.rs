//! Numbers as C's `%g` writes them: the shortest of fixed and exponent notation, without trailing zeros.

/// `value` with `precision` significant digits.
pub(super) fn general(value: f64, precision: usize) -> String {
    let precision = precision.max(1);
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string().to_lowercase() };
    }
    let scientific = format!("{:.*e}", precision - 1, value);
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(digits), exponent.unsigned_abs());
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    without_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn writes_what_c_writes() {
        let cases = [
            (1e-6, 6, "1e-06"),
            (1e-9, 6, "1e-09"),
            (1.0, 6, "1"),
            (0.001, 6, "0.001"),
            (0.606656, 6, "0.606656"),
            (6.2604e-05, 6, "6.2604e-05"),
            (0.00146035, 6, "0.00146035"),
            (1_234_567.0, 6, "1.23457e+06"),
            (999_999.9, 6, "1e+06"),
            (1234.5, 3, "1.23e+03"),
            (0.0, 6, "0"),
            (12.5, 3, "12.5"),
        ];
        for (value, precision, expected) in cases {
            assert_eq!(general(value, precision), expected, "{value}");
        }
    }
}
