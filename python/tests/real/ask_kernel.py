"""Has a Jupyter server start a kernel, and the kernel run the cells of a notebook: ADDRESS TOKEN RUNTIME NOTEBOOK.

Cells are sent over the protocol of kernels, as a browser's are through the server. Prints what the cells print.
"""

import json
import sys
import urllib.request
from pathlib import Path

from jupyter_client import BlockingKernelClient

address, token, runtime, notebook = sys.argv[1:]


def ask(method: str, path: str) -> dict[str, str]:
    """One answer of the server."""
    request = urllib.request.Request(f"{address}/api/{path}", method=method)
    request.add_header("Authorization", f"token {token}")
    with urllib.request.urlopen(request, timeout=120) as answer:
        return dict(json.loads(answer.read() or b"{}"))


kernel = ask("POST", "kernels")
client = BlockingKernelClient(connection_file=str(Path(runtime) / f"kernel-{kernel['id']}.json"))
client.load_connection_file()
client.start_channels()
for attempt in range(10, -1, -1):
    try:
        client.wait_for_ready(timeout=60)
        break
    except RuntimeError:
        # On a busy machine the kernel does not answer the first beats, and counts as dead.
        if attempt == 0:
            raise
for cell in json.loads(Path(notebook).read_text())["cells"]:
    answer = client.execute_interactive("".join(cell["source"]), timeout=300)
    assert answer["content"]["status"] == "ok", answer["content"]
client.stop_channels()
ask("DELETE", f"kernels/{kernel['id']}")
