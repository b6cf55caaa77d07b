"""The main text of every page of a folder, by trafilatura: read_with_trafilatura.py PAGES OUT.json [TRUTH]."""

import gzip
import json
import sys
import time
from pathlib import Path

import trafilatura

pages = {path.name.split(".")[0]: gzip.decompress(path.read_bytes()) for path in Path(sys.argv[1]).iterdir()}
truth = Path(sys.argv[3]) if len(sys.argv) > 3 else None
urls = {key: json.loads((truth / f"{key}.json").read_text())["url"] if truth else None for key in pages}
began = time.process_time()
texts = {key: trafilatura.extract(body, url=urls[key], include_comments=False) or "" for key, body in pages.items()}
seconds = time.process_time() - began
Path(sys.argv[2]).write_text(json.dumps(texts))
print(json.dumps({"reader": "trafilatura", "pages": len(pages), "cpu_seconds": seconds}))
