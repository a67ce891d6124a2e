"""Holds the list of what a release is made of against the schema of CycloneDX, and looks for what must be on it."""

import json
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = Path(sys.argv[1]).read_text()
if problem := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
    sys.exit(f"the list is not CycloneDX 1.6: {problem}")
listing = json.loads(text)
names = {component["name"] for component in listing["components"]}
assert {"sprag-core", "sprag-store", "tokio", "rustls", "rusqlite"} <= names, "crates of the program are missing"
assert not {"sprag-testkit", "proptest", "insta"} & names, "crates of the tests are listed"
unnamed = [component["name"] for component in listing["components"] if "licenses" not in component]
assert not unnamed, f"without a licence: {unnamed}"
print(f"   {len(names)} crates")
