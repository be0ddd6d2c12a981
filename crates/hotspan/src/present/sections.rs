//! Several tables of several files, in one of the formats: what commands with more than one table print.

use std::io::Write;
use std::path::{Path, PathBuf};

use hotspan_analyze::Model;
use hotspan_analyze::Table;
use serde_json::{Map, Value, json};

use super::{Format, csv, json_rows, markdown, text};
use crate::error::CommandError;
use crate::files;

/// Prints the tables that `tables` makes of each file. In JSON each table is a list under its name; in CSV a blank line
/// parts tables, since each has columns of its own.
pub(crate) fn print(
    paths: &[PathBuf],
    format: Format,
    output: &mut dyn Write,
    mut tables: impl FnMut(&Path, &Model) -> Result<Vec<(&'static str, Table)>, CommandError>,
) -> Result<(), CommandError> {
    let mut objects = Vec::new();
    let result = files::for_each(paths, |path, model, position| {
        let tables = tables(path, model)?;
        if format.json {
            objects.push(object(path, model, &tables));
            return Ok(());
        }
        if position.several && !format.csv {
            writeln!(output, "{}{}\n", if position.first { "" } else { "\n" }, files::heading(path, model))?;
        }
        let rank = model.distributed().and_then(|distributed| distributed.rank);
        let prefix = [
            ("file", path.display().to_string()),
            ("rank", rank.map_or(String::new(), |rank| rank.to_string())),
        ];
        if format.csv && !position.first && !tables.is_empty() {
            writeln!(output)?;
        }
        write_tables(&tables, format, if position.several { &prefix } else { &[] }, output)
    });
    if format.json {
        writeln!(output, "{:#}", Value::Array(objects))?;
    }
    result
}

/// Prints tables that are not of one file. In JSON they are one object.
pub(crate) fn print_tables(
    tables: &[(&'static str, Table)],
    format: Format,
    output: &mut dyn Write,
) -> Result<(), CommandError> {
    if format.json {
        let object: Map<String, Value> =
            tables.iter().map(|(name, table)| ((*name).to_owned(), json_rows(table))).collect();
        return Ok(writeln!(output, "{:#}", Value::Object(object))?);
    }
    write_tables(tables, format, &[], output)
}

fn write_tables(
    tables: &[(&'static str, Table)],
    format: Format,
    prefix: &[(&str, String)],
    output: &mut dyn Write,
) -> Result<(), CommandError> {
    for (place, (_, table)) in tables.iter().enumerate() {
        if place > 0 {
            writeln!(output)?;
        }
        let shown = if format.csv {
            csv(table, prefix, true)
        } else if format.markdown {
            markdown(table)
        } else {
            text(table)
        };
        output.write_all(shown.as_bytes())?;
    }
    Ok(())
}

fn object(path: &Path, model: &Model, tables: &[(&'static str, Table)]) -> Value {
    let rank = model.distributed().and_then(|distributed| distributed.rank);
    let mut object = Map::new();
    object.insert("file".to_owned(), json!(path.display().to_string()));
    object.insert("rank".to_owned(), json!(rank));
    for (name, table) in tables {
        object.insert((*name).to_owned(), json_rows(table));
    }
    Value::Object(object)
}
