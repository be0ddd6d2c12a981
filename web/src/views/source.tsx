// Source: the files of the program with what each line cost on the processor, on devices and in memory.

import type { Cell, Page, SourceData } from "../data/api";
import { isStatic, useAnswer } from "../data/server";
import { Answer, Empty } from "../widgets/answer";
import { MyCode, ofMyCode } from "../widgets/my_code";
import { SourceText } from "../widgets/source_text";
import { Table } from "../widgets/table";
import { Waiting } from "../widgets/waiting";
import type { ViewProperties } from "./view";

export function Source(props: ViewProperties) {
  const loaded = useAnswer<Page>(ofMyCode(`run/${props.run.id}/table/source`, props.parameters));
  return (
    <>
      {props.parameters["file"] === undefined && (
        <p class="tabs">
          <MyCode {...props} help="Leave out the files of libraries" /> <span class="quiet">A file or line shows its source.</span>
        </p>
      )}
      <Answer loaded={loaded}>{(page) => (page.sections.length === 0 ? <Empty record={page.record} /> : <Files {...props} page={page} />)}</Answer>
    </>
  );
}

function Files(props: ViewProperties & { page: Page }) {
  const [files, lines] = ["files", "lines"].map((key) => props.page.sections.find((section) => section.key === key)?.table);
  const fileOf = lines?.columns.findIndex((column) => column.key === "file") ?? -1;
  const lineOf = lines?.columns.findIndex((column) => column.key === "line") ?? -1;
  const file = props.parameters["file"];
  const open = (row: readonly Cell[], line?: Cell) => props.change({ file: String(row[0]), line: line === undefined || line === null ? undefined : String(line) });
  if (files === undefined || lines === undefined) return <Empty record={props.page.record} />;
  if (file === undefined) {
    return (
      <>
        <Table table={files} onRow={(row) => open(row)} />
        <Table table={lines} onRow={(row) => open(row, row[lineOf])} />
      </>
    );
  }
  const rows = lines.rows.filter((row) => row[fileOf] === file);
  return (
    <>
      <p class="tabs">
        <button type="button" onClick={() => props.change({ file: undefined, line: undefined })}>All files</button> <strong>{file}</strong>
      </p>
      <Text run={props.run.id} file={file} columns={lines.columns} rows={rows} line={props.parameters["line"] === undefined ? null : Number(props.parameters["line"])} />
    </>
  );
}

function Text(props: { run: number; file: string; columns: Parameters<typeof SourceText>[0]["columns"]; rows: readonly (readonly Cell[])[]; line: number | null }) {
  const loaded = useAnswer<SourceData>(`run/${props.run}/source?file=${encodeURIComponent(props.file)}`);
  if (loaded.state === "waiting") return <Waiting />;
  if (loaded.state === "failed") {
    const why = isStatic ? "This page was made without source: report --html has --with-source for that." : `${loaded.error.message} ${loaded.error.hint ?? ""}`;
    return (
      <>
        <p class="quiet" role="status">{why}</p>
        <SourceText source={null} {...props} />
      </>
    );
  }
  return (
    <>
      {loaded.value.changed && <p role="status">The file was written after the recording: numbers may stand beside other lines than they were measured at.</p>}
      <SourceText source={loaded.value} {...props} />
    </>
  );
}
