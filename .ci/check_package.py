"""Checks the packages that `cargo package` has made: check_package.py FOLDER.

Of every crate that can be published: what crates.io asks for is in its Cargo.toml, the package is below
crates.io's limit and has README and licences, and every file that the sources include is in it."""

import json
import posixpath
import re
import subprocess
import sys
import tarfile
from pathlib import Path

# https://doc.rust-lang.org/cargo/reference/publishing.html
LIMIT = 10 * 1024 * 1024
INCLUDED = re.compile(r'include_(?:str|bytes)!\(\s*"([^"]+)"\s*,?\s*\)')


def publishable():
    command = ["cargo", "metadata", "--no-deps", "--locked", "--format-version", "1"]
    packages = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["packages"]
    # An empty list of registries is what `publish = false` becomes.
    return [package for package in packages if package["publish"] != []]


def metadata_faults(package):
    for field in ("description", "license", "readme"):
        if not package[field]:
            yield f"no {field} in Cargo.toml"
    for field in ("keywords", "categories"):
        if not 1 <= len(package[field]) <= 5:
            yield f"{field}: 1 to 5, not {len(package[field])}"
    for keyword in package["keywords"]:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_+-]{0,19}", keyword):
            yield f"keyword `{keyword}`: at most 20 letters, digits, `-`, `_`, `+`"


def embedded():
    """Files that build.rs compiles into the binary, and leaves out in silence where they are missing."""
    for name in re.findall(r'"(checkpoints/[^"]+)"', Path("build.rs").read_text()):
        path = Path(name)
        if path.is_dir():
            yield from (str(file) for file in path.iterdir() if file.suffix in (".json", ".safetensors"))
        else:
            yield name


def content_faults(package, files):
    wanted = ["README.md", "LICENSE-APACHE", "LICENSE-MIT"]
    if package["name"] == "bufgym":
        wanted += embedded()
    for name in wanted:
        if name not in files:
            yield f"{name} is not in the package"
    for name, text in files.items():
        for target in INCLUDED.findall(text.decode()) if name.endswith(".rs") else []:
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            if path not in files:
                yield f"{name} includes {target}, which is not in the package"


def contents(path, prefix):
    """Every file of a package by its name. A link to a file is packed as the file."""
    with tarfile.open(path) as archive:
        return {
            member.name.removeprefix(prefix): archive.extractfile(member).read()
            for member in archive
            if member.isfile()
        }


def faults(package, folder):
    yield from metadata_faults(package)
    stem = f"{package['name']}-{package['version']}"
    path = folder / f"{stem}.crate"
    if not path.is_file():
        yield f"{path} is missing"
        return
    files = contents(path, f"{stem}/")
    size = path.stat().st_size
    print(f"{stem:<24} {len(files):>4} files {size:>9} bytes")
    if size > LIMIT:
        yield f"{size} bytes, above the limit of {LIMIT}"
    yield from content_faults(package, files)


def main():
    folder = Path(sys.argv[1])
    found = [f"{package['name']}: {fault}" for package in publishable() for fault in faults(package, folder)]
    sys.exit("\n".join(found) or None)


main()
