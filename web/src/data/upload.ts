// Gives a file to the server of this page, which shows it as a trace. It goes nowhere else.

import type { Problem, Run } from "./api";
import { Refused } from "./server";

/** Sends a file; `told` hears how many bytes of it have been sent. */
export function upload(file: File, told: (sent: number) => void): Promise<Run> {
  return new Promise((resolve, reject) => {
    // Unlike `fetch`, this says how far it has come.
    const request = new XMLHttpRequest();
    request.open("POST", `./api/dropped?name=${encodeURIComponent(file.name)}`);
    request.upload.addEventListener("progress", (event) => told(event.loaded));
    request.addEventListener("error", () => reject(new Refused("The server did not take the file.", "It may have ended, or the file may be too large.")));
    request.addEventListener("load", () => {
      try {
        const answer = JSON.parse(request.responseText) as Run & Problem;
        if (request.status === 200) resolve(answer);
        else reject(new Refused(answer.message, answer.hint));
      } catch {
        reject(new Refused(`The server answered ${request.status}.`, null));
      }
    });
    request.send(file);
  });
}
