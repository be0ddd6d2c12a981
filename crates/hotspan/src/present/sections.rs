//! Several tables of several files, in one of the formats: what commands with more than one table print.

use std::io::Write;
use std::path::{Path, PathBuf};

use hotspan_analyze::Model;
use hotspan_analyze::Table;
use serde_json::{Map, Value, json};

use super::{Format, in_format, json_rows, write_json};
use crate::error::CommandError;
use crate::files;

/// Prints the tables that `tables` makes of each file. In JSON each table is a list under its id; in CSV a blank line
/// parts tables, since each has columns of its own.
pub(crate) fn print(
    paths: &[PathBuf],
    format: Format,
    output: &mut dyn Write,
    mut tables: impl FnMut(&Path, &Model) -> Result<Vec<Table>, CommandError>,
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
        write_json(&Value::Array(objects), output)?;
    }
    result
}

/// Prints tables that are not of one file. In JSON they are one object.
pub(crate) fn print_tables(
    tables: &[Table],
    format: Format,
    output: &mut dyn Write,
) -> Result<(), CommandError> {
    if format.json {
        let object: Map<String, Value> =
            tables.iter().map(|table| (table.id.clone(), json_rows(table))).collect();
        return Ok(write_json(&Value::Object(object), output)?);
    }
    write_tables(tables, format, &[], output)
}

fn write_tables(
    tables: &[Table],
    format: Format,
    prefix: &[(&str, String)],
    output: &mut dyn Write,
) -> Result<(), CommandError> {
    for (index, table) in tables.iter().enumerate() {
        if index > 0 {
            writeln!(output)?;
        }
        output.write_all(in_format(table, format, prefix, true).as_bytes())?;
    }
    Ok(())
}

fn object(path: &Path, model: &Model, tables: &[Table]) -> Value {
    let rank = model.distributed().and_then(|distributed| distributed.rank);
    let mut object = Map::new();
    object.insert("file".to_owned(), json!(path.display().to_string()));
    object.insert("rank".to_owned(), json!(rank));
    for table in tables {
        object.insert(table.id.clone(), json_rows(table));
    }
    Value::Object(object)
}
