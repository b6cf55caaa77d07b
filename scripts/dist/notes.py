"""What the page of a release says: the section of this version in CHANGELOG.md, without its heading."""

import re
import sys

from common import RELEASE, ROOT, VERSION


def section(text, version):
    """The lines from the version's heading to the next one; None if there is no such heading."""
    parts = re.split(r"^## \[(.+?)\].*$", text, flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2]))
    return sections[version].strip() if version in sections else None


def main():
    notes = section((ROOT / "CHANGELOG.md").read_text(), VERSION)
    if not notes:
        sys.exit(f"notes: CHANGELOG.md has no lines below '## [{VERSION}] - DATE'; move what is under Unreleased there")
    # On that page a relative link leads nowhere.
    notes = notes.replace("](docs/", f"]({RELEASE['repository']}/blob/v{VERSION}/docs/")
    # GitHub refuses longer ones.
    if len(notes) > 125_000:
        sys.exit(f"notes: the section of {VERSION} in CHANGELOG.md has {len(notes)} characters; at most 125,000 can be published. Shorten it")
    print(notes)


if __name__ == "__main__":
    main()
