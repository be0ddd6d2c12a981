//! Names of native functions as people read them: C++ and Rust demangled, parameters and compiler's suffixes removed.

/// The longest name that is kept whole.
const LONGEST: usize = 160;

/// A readable name of a symbol.
pub(crate) fn readable(symbol: &[u8]) -> String {
    let symbol = String::from_utf8_lossy(symbol);
    // Versions of the C library: memcpy@@GLIBC_2.14.
    let symbol = symbol.split('@').next().unwrap_or_default();
    if let Ok(rust) = rustc_demangle::try_demangle(symbol) {
        return shortened(format!("{rust:#}"));
    }
    if symbol.starts_with("_Z") {
        let options =
            cpp_demangle::DemangleOptions::new().no_params().no_return_type().hide_expression_literal_types();
        // The compiler's clones of a function (".cold", ".constprop.0") are no part of its name.
        let whole = symbol.split('.').next().unwrap_or_default();
        if let Some(name) =
            cpp_demangle::Symbol::new(whole).ok().and_then(|name| name.demangle_with_options(&options).ok())
        {
            return shortened(name);
        }
    }
    shortened(without_clone_suffix(symbol).to_owned())
}

fn without_clone_suffix(symbol: &str) -> &str {
    let ends = [".cold", ".part", ".constprop", ".isra", ".lto_priv", ".localalias"];
    let end = ends.iter().filter_map(|end| symbol.find(end)).min();
    end.filter(|&end| end > 0).map_or(symbol, |end| &symbol[..end])
}

/// Template arguments are left out of names that are too long to read, then the end.
fn shortened(name: String) -> String {
    if name.chars().count() <= LONGEST {
        return name;
    }
    let mut short = String::new();
    let mut depth = 0_usize;
    let mut before = ' ';
    for letter in name.chars() {
        // operator< and operator-> are no brackets.
        let opens = letter == '<' && !short.ends_with("operator") && !short.ends_with("operator<");
        let closes = letter == '>' && depth > 0 && before != '-';
        if opens {
            if depth == 0 {
                short.push_str("<…>");
            }
            depth += 1;
        } else if closes {
            depth -= 1;
        } else if depth == 0 {
            short.push(letter);
        }
        before = letter;
    }
    if short.chars().count() > LONGEST {
        short = short.chars().take(LONGEST - 1).chain(['…']).collect();
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demangles_and_trims() {
        assert_eq!(readable(b"_ZN2at6native3addERKNS_6TensorES3_"), "at::native::add");
        assert_eq!(readable(b"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"), "core::fmt::Formatter::pad");
        assert_eq!(readable(b"_PyEval_EvalFrameDefault.cold"), "_PyEval_EvalFrameDefault");
        assert_eq!(readable(b"memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(readable(b"_Znonsense"), "_Znonsense");
    }

    #[test]
    fn long_templates_are_folded() {
        let name = format!("std::sort<{}>::call", "int, ".repeat(80));
        assert_eq!(shortened(name), "std::sort<…>::call");
        assert_eq!(shortened("x".repeat(400)).chars().count(), LONGEST);
    }
}
