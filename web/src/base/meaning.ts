// One colour for each meaning, on every page: what the host and the devices do, why a device is idle, what memory is used for.
// Names come from the server: titles of activities, keys of columns, keys and titles of causes.

export const GREY = "#8a8f98";

/** A meaning, its colour, and the names it has. */
type Meaning = readonly [meaning: string, colour: string, names: RegExp];

export const MEANINGS: readonly Meaning[] = [
  ["nothing", GREY, /^(idle|other|unknown|not recorded|nothing recorded|rest)$/],
  ["compute", "#4285f4", /^(compute|operators?|torch operators( \(cpu\))?)$/],
  ["communication", "#a142f4", /^((exposed )?communication( call)?|transfer)$/],
  ["copy", "#e8710a", /^((exposed )?cop(y|ies))$/],
  ["DataLoader", "#d93b6f", /^data_?loader$/],
  ["waiting for the device", "#b59f00", /^(waiting|waiting for (the )?(gpu|device)|synchroni[sz]e|synchroni[sz]ing call)$/],
  ["runtime", "#12a4b4", /^(runtime|runtime calls?)$/],
  ["Python", "#12a05c", /^python( code)?$/],
  ["host too slow", "#8bc34a", /^(host_late|host (launched late|too slow to launch))$/],
  ["launched, not begun", "#8fb8de", /^(dispatch|launched, not (begun|started))$/],
  ["allocator", "#7b5e57", /^(allocator|allocat(ing|ion))$/],
  ["native code", "#5c6bc0", /^native code\b.*$/],
  ["I/O", "#c2410c", /^i\/o$/],
  ["garbage collection", "#9d174d", /^garbage collection$/],
  ["imports", "#a8896c", /^(importing modules|imports?)$/],
  ["waiting for others", "#d4a5f9", /^(wait|waiting for (threads or processes|events|others))$/],
  ["sleep", "#b8c0cc", /^sleep(ing)?$/],
  ["the recorder", "#5b6472", /^(hotspan itself|profiler|overhead)$/],
  ["start and exit", "#6d8f8b", /^(starting python|exit)$/],
  ["parameters", "#4285f4", /^parameters?$/],
  ["optimizer state", "#a142f4", /^optimizer[_ ]state$/],
  ["inputs", "#d93b6f", /^inputs?$/],
  ["temporaries", "#12a4b4", /^temporar(y|ies)$/],
  ["activations", "#12a05c", /^activations?$/],
  ["gradients", "#e8710a", /^gradients?$/],
  ["autograd details", "#b59f00", /^autograd[_ ]details?$/],
  ["resident memory", "#5c6bc0", /^resident$/],
];

/** Why a device is idle, in words; tables have the names that programs use. */
const CAUSES: Readonly<Record<string, string>> = {
  host_late: "Host too slow to launch",
  synchronise: "Synchronising call",
  data_loader: "DataLoader",
  copy: "Copy",
  communication: "Communication call",
  allocator: "Allocator",
  dispatch: "Launched, not started",
  unknown: "Unknown",
};

/** A cause of idle time as people call it. */
export function causeTitle(key: string): string {
  return CAUSES[key] ?? key;
}

/** The colour of what a name means; `undefined` where it means nothing in particular. */
export function meant(name: string): string | undefined {
  const plain = name.trim().toLowerCase();
  return MEANINGS.find(([, , names]) => names.test(plain))?.[1];
}
