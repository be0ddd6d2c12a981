//! Encoded inputs as the JSON text that Kineto writes: `Input Dims`, `Input Strides`, `Input type`, `Concrete Inputs`.
//!
//! The shim writes each distinct list of inputs once, so texts are made once and not per operator.

use std::fmt::Write;

use crate::torch::abi::input;

/// The texts of one list of inputs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InputTexts {
    pub(crate) concrete: String,
    pub(crate) types: String,
    pub(crate) strides: String,
    pub(crate) dims: String,
    /// Keyword inputs: a name and its value as JSON.
    pub(crate) keywords: Vec<(String, Keyword)>,
}

/// The value of a keyword input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Int(i64),
    Text(String),
    Json(String),
}

/// One item of the encoding.
struct Item<'a> {
    tag: u8,
    dtype: u8,
    flagged: bool,
    count: usize,
    words: &'a [u64],
}

struct InputCursor<'a> {
    words: &'a [u64],
}

impl<'a> InputCursor<'a> {
    fn next(&mut self) -> Option<Item<'a>> {
        let (&head, rest) = self.words.split_first()?;
        let (tag, dtype, flagged) = (head as u8, (head >> 8) as u8, (head >> 16) as u8 & input::FLAG != 0);
        let count = (head >> 32) as usize;
        let length = match tag {
            input::TENSOR => count * if flagged { 1 } else { 2 },
            input::INT | input::DOUBLE => 1,
            input::COMPLEX => 2,
            input::TEXT => count.div_ceil(8),
            _ => 0,
        };
        let (words, rest) = rest.split_at_checked(length)?;
        self.words = rest;
        Some(Item { tag, dtype, flagged, count, words })
    }
}

/// Decodes `count` inputs and the keyword inputs after them.
pub(crate) fn decode(words: &[u64], count: usize, mut dtype_name: impl FnMut(u8) -> String) -> InputTexts {
    let mut cursor = InputCursor { words };
    let mut texts = InputTexts::default();
    let all = |texts: &mut InputTexts, text: &str| {
        for part in [&mut texts.concrete, &mut texts.types, &mut texts.strides, &mut texts.dims] {
            part.push_str(text);
        }
    };
    all(&mut texts, "[");
    for index in 0..count {
        let Some(item) = cursor.next() else { break };
        if index > 0 {
            all(&mut texts, ", ");
        }
        decode_input(&item, &mut cursor, &mut texts, &mut dtype_name);
    }
    all(&mut texts, "]");
    while let (Some(key), Some(value)) = (cursor.next(), cursor.next()) {
        texts.keywords.push((text_of(&key), keyword(&value, &mut cursor)));
    }
    texts
}

fn decode_input(
    item: &Item<'_>,
    cursor: &mut InputCursor<'_>,
    texts: &mut InputTexts,
    dtype_name: &mut impl FnMut(u8) -> String,
) {
    let (mut concrete, mut kind) = (String::new(), String::new());
    let (mut dims, mut strides) = ("[]".to_owned(), "[]".to_owned());
    match item.tag {
        input::TENSOR => {
            kind = dtype_name(item.dtype);
            (dims, strides) = shape(item);
        }
        input::TENSOR_LIST => {
            let (mut all_dims, mut all_strides, mut all_defined) = (Vec::new(), Vec::new(), true);
            for _ in 0..if item.flagged { 0 } else { item.count } {
                let Some(tensor) = cursor.next() else { break };
                all_defined &= tensor.tag == input::TENSOR;
                let (one, other) = shape(&tensor);
                all_dims.push(one);
                all_strides.push(other);
            }
            // Like Kineto: a list with a tensor missing is shown as nothing.
            if all_defined {
                kind = "TensorList".to_owned();
                dims = format!("[{}]", all_dims.join(", "));
                strides = format!("[{}]", all_strides.join(", "));
            }
        }
        input::SCALAR_LIST => {
            kind = "ScalarList".to_owned();
            let scalars = (0..item.count).map_while(|_| cursor.next()).map(|scalar| scalar_text(&scalar));
            concrete = format!("[{}]", scalars.collect::<Vec<_>>().join(", "));
        }
        input::INT | input::DOUBLE | input::BOOL | input::COMPLEX | input::SYMBOLIC => {
            kind = "Scalar".to_owned();
            concrete = scalar_text(item);
        }
        input::OTHER | input::UNDEFINED => {}
        _ => {}
    }
    let _ = write!(texts.concrete, "\"{concrete}\"");
    let _ = write!(texts.types, "\"{kind}\"");
    texts.strides.push_str(&strides);
    texts.dims.push_str(&dims);
}

fn shape(tensor: &Item<'_>) -> (String, String) {
    let list = |words: &[u64]| {
        let numbers: Vec<String> = words.iter().map(|&word| (word as i64).to_string()).collect();
        format!("[{}]", numbers.join(", "))
    };
    let (dims, strides) = tensor.words.split_at(tensor.count.min(tensor.words.len()));
    (list(dims), list(strides))
}

/// A scalar as torch prints it in Concrete Inputs.
fn scalar_text(item: &Item<'_>) -> String {
    let word = |index: usize| item.words.get(index).copied().unwrap_or(0);
    match item.tag {
        input::INT => (word(0) as i64).to_string(),
        input::DOUBLE => double_text(f64::from_bits(word(0))),
        input::BOOL => if item.count != 0 { "True" } else { "False" }.to_owned(),
        input::COMPLEX => {
            let (real, imaginary) = (f64::from_bits(word(0)), f64::from_bits(word(1)));
            let sign = if imaginary >= 0.0 { '+' } else { '-' };
            format!("{}{sign}{}j", double_text(real), double_text(imaginary.abs()))
        }
        // torch.compile's symbolic sizes have no value yet.
        _ => "symbolic".to_owned(),
    }
}

/// Whole numbers below 10^10 as `2.`, others with 17 significant digits like C's `%.17g`.
fn double_text(number: f64) -> String {
    if number.is_nan() {
        return if number.is_sign_negative() { "-nan" } else { "nan" }.to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let plain = number == 0.0 || number.is_normal();
    if plain && number.abs() < 1e10 && number.trunc() == number {
        let sign = if number.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}.", number.abs() as i64);
    }
    general_17(number)
}

fn general_17(number: f64) -> String {
    let scientific = format!("{number:.16e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..17).contains(&exponent) {
        trim(&format!("{number:.*}", (16 - exponent).max(0) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
    }
}

fn text_of(item: &Item<'_>) -> String {
    let bytes: Vec<u8> = item.words.iter().flat_map(|word| word.to_ne_bytes()).take(item.count).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn keyword(item: &Item<'_>, cursor: &mut InputCursor<'_>) -> Keyword {
    let word = item.words.first().copied().unwrap_or(0);
    match item.tag {
        input::INT => Keyword::Int(word as i64),
        input::BOOL => Keyword::Json((item.count != 0).to_string()),
        input::DOUBLE => match serde_json::Number::from_f64(f64::from_bits(word)) {
            Some(number) => Keyword::Json(number.to_string()),
            None => Keyword::Text(double_text(f64::from_bits(word))),
        },
        input::TEXT_LIST => {
            let texts: Vec<String> =
                (0..item.count).map_while(|_| cursor.next()).map(|text| text_of(&text)).collect();
            Keyword::Json(serde_json::Value::from(texts).to_string())
        }
        _ => Keyword::Text(text_of(item)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(tag: u8, dtype: u8, flags: u8, count: u64) -> u64 {
        u64::from(tag) | u64::from(dtype) << 8 | u64::from(flags) << 16 | count << 32
    }

    fn names(dtype: u8) -> String {
        if dtype == 6 { "float".to_owned() } else { "long int".to_owned() }
    }

    #[test]
    fn reads_like_kineto() {
        let words = [
            head(input::TENSOR, 6, 0, 2),
            3,
            4,
            4,
            1,
            head(input::TENSOR_LIST, 0, 0, 2),
            head(input::TENSOR, 6, 0, 1),
            5,
            1,
            head(input::TENSOR, 6, 0, 0),
            head(input::DOUBLE, 0, 0, 0),
            0.1f64.to_bits(),
            head(input::SCALAR_LIST, 0, 0, 2),
            head(input::INT, 0, 0, 0),
            u64::MAX,
            head(input::BOOL, 0, 0, 1),
            head(input::TENSOR, 4, input::FLAG, 2),
            3,
            4,
            head(input::OTHER, 0, 0, 0),
            head(input::COMPLEX, 0, 0, 0),
            3f64.to_bits(),
            (-4.5f64).to_bits(),
        ];
        let texts = decode(&words, 7, names);
        assert_eq!(texts.dims, "[[3, 4], [[5], []], [], [], [3, 4], [], []]");
        assert_eq!(texts.strides, "[[4, 1], [[1], []], [], [], [], [], []]");
        assert_eq!(
            texts.types,
            r#"["float", "TensorList", "Scalar", "ScalarList", "long int", "", "Scalar"]"#
        );
        assert_eq!(texts.concrete, r#"["", "", "0.10000000000000001", "[-1, True]", "", "", "3.-4.5j"]"#);
        assert!(texts.keywords.is_empty());
    }

    #[test]
    fn long_lists_and_lists_with_gaps_have_no_shapes() {
        let words = [
            head(input::TENSOR_LIST, 0, input::FLAG, 35),
            head(input::TENSOR_LIST, 0, 0, 2),
            head(input::TENSOR, 6, 0, 0),
            head(input::UNDEFINED, 0, 0, 0),
        ];
        let texts = decode(&words, 2, names);
        assert_eq!((texts.dims.as_str(), texts.types.as_str()), ("[[], []]", r#"["TensorList", ""]"#));
    }

    #[test]
    fn keyword_inputs_follow_the_others() {
        let text = |text: &str| {
            let mut words = vec![head(input::TEXT, 0, 0, text.len() as u64)];
            for bytes in text.as_bytes().chunks(8) {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                words.push(u64::from_ne_bytes(word));
            }
            words
        };
        let words = [
            vec![head(input::OTHER, 0, 0, 0)],
            text("stream"),
            vec![head(input::INT, 0, 0, 0), 7],
            text("kernel_file"),
            text("/tmp/a \"b\".py"),
            text("names"),
            vec![head(input::TEXT_LIST, 0, 0, 2)],
            text("one"),
            text("another"),
            text("flag"),
            vec![head(input::BOOL, 0, 0, 1)],
        ];
        let texts = decode(&words.concat(), 1, names);
        let expected = [
            ("stream".to_owned(), Keyword::Int(7)),
            ("kernel_file".to_owned(), Keyword::Text("/tmp/a \"b\".py".to_owned())),
            ("names".to_owned(), Keyword::Json("[\"one\",\"another\"]".to_owned())),
            ("flag".to_owned(), Keyword::Json("true".to_owned())),
        ];
        assert_eq!(texts.keywords, expected);
    }

    #[test]
    fn numbers_read_as_torch_prints_them() {
        let expected = [
            (0.0, "0."),
            (-0.0, "-0."),
            (1.0, "1."),
            (-2.0, "-2."),
            (0.1, "0.10000000000000001"),
            (1e-20, "9.9999999999999995e-21"),
            (1e10, "10000000000"),
            (1.5e17, "1.5e+17"),
            (1e16, "10000000000000000"),
            (0.0001, "0.0001"),
            (1e-5, "1.0000000000000001e-05"),
            (f64::INFINITY, "inf"),
            (123456.789, "123456.789"),
        ];
        for (number, text) in expected {
            assert_eq!(double_text(number), text);
        }
    }

    #[test]
    fn broken_words_end_the_list_without_a_panic() {
        assert_eq!(decode(&[head(input::TENSOR, 6, 0, 1 << 30)], 3, names).dims, "[]");
    }
}
