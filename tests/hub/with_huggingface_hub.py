"""Downloads from the hub named by HF_ENDPOINT with the client that its users have. Prints the snapshot's directory."""

import os
from pathlib import Path

from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

TOKEN = os.environ["TOKEN"]
api = HfApi()


def refused(expected, call):
    try:
        call()
    except expected:
        return
    raise SystemExit(f"expected {expected.__name__}")


info = api.model_info("org/tiny", files_metadata=True)
listed = list(api.list_repo_tree("org/tiny", recursive=True))
sizes = {file.path: file.size for file in listed if hasattr(file, "size")}
assert {sibling.rfilename: sibling.size for sibling in info.siblings} == sizes
assert {sibling.rfilename for sibling in info.siblings if sibling.lfs} == {"model.safetensors"}
top = {entry.path for entry in api.list_repo_tree("org/tiny")}
assert top == {"config.json", "model.safetensors", "1_Pooling"}, top
assert api.model_info("org/old").id == "org/tiny"

on_branch = hf_hub_download("org/tiny", "config.json", revision="refs/pr/1")
assert Path(on_branch).read_text() == "first", on_branch
assert Path(hf_hub_download("org/old", "config.json")).read_text() == "second"

refused(RepositoryNotFoundError, lambda: api.model_info("org/none"))
refused(RepositoryNotFoundError, lambda: hf_hub_download("org/secret", "a.txt"))
refused(RevisionNotFoundError, lambda: hf_hub_download("org/tiny", "config.json", revision="v9"))
refused(RemoteEntryNotFoundError, lambda: hf_hub_download("org/tiny", "none.json"))
refused(GatedRepoError, lambda: hf_hub_download("org/gated", "a.txt"))
refused(GatedRepoError, lambda: hf_hub_download("org/gated", "a.txt", token="hf_stranger"))
refused(RepositoryNotFoundError, lambda: hf_hub_download("org/secret", "a.txt", token="hf_stranger"))
refused(HfHubHTTPError, lambda: api.model_info("org/tiny", token="hf_nobody"))
for repo in ["org/gated", "org/secret"]:
    assert Path(hf_hub_download(repo, "a.txt", token=TOKEN)).read_text() == "for friends"
large = Path(hf_hub_download("org/large", "w.bin")).read_bytes()
assert large == bytes([7]) * (11 << 20)

print(snapshot_download("org/tiny", token=TOKEN))
