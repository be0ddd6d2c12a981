//! The TypeScript of the web app says what the server answers; `HOTSPAN_WRITE=1` writes it anew.

use std::path::Path;

#[test]
fn the_types_of_the_web_app_are_those_of_the_server() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/data/api.ts");
    let wanted = hotspan_view::api::typescript();
    if std::env::var_os("HOTSPAN_WRITE").is_some() {
        std::fs::write(&file, &wanted).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(written, wanted, "run: HOTSPAN_WRITE=1 cargo test -p hotspan-view --test api_types");
}
