"""Editing what a user's model depends on changes its keys; editing other files does not."""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossover.config.models import Model, Table
from crossover.config.workloads import OWN
from crossover.machine import named_files
from crossover.machine.code_key import Code, code_of
from crossover.machine.installed import version_of

FROM_FILE = "import os, sys, json, importlib, torch\nfrom pathlib import Path\nHERE = Path(__file__).resolve().parent\n"

# By what the model does: its file, its code, and the other files in its key.
PARTS = {
    "its own file": ("net.py", "", []),
    "the working directory": ("sub/net.py", "import layers", ["layers.py"]),
    "a package": ("net.py", "from pkg import x", ["pkg/__init__.py"]),
    "a folder without __init__": ("net.py", "import space.part", ["space/part.py"]),
    "relative, above": ("net.py", "from pkg.sub.part import x", ["pkg/sub/part.py", "pkg/common.py"]),
    "all names of a package": ("net.py", "from pkg import *", ["pkg/__init__.py", "pkg/part.py"]),
    "import_module": ("net.py", "importlib.import_module('pkg.part')", ["pkg/part.py"]),
    "a package that imports lazily": (
        "net.py",
        "from lazy import Net",
        ["lazy/__init__.py", "lazy/net.py"],
    ),
    "sys.path": ("net.py", "sys.path.insert(0, str(HERE / 'lib'))\nimport part", ["lib/part.py"]),
    "sys.path, before a namesake": (
        "net.py",
        "sys.path.insert(0, 'new')\nimport part",
        ["new/part.py"],
    ),
    "a compiled module": ("net.py", "import fast", ["fast.so"]),
    "an archive": ("net.py", "sys.path.insert(0, 'parts.zip')\nimport zipped", ["parts.zip"]),
    "C++": ("net.py", "from torch.utils.cpp_extension import load\nload('k', ['k.cpp'])", ["k.cpp", "k.h"]),
    "JSON": ("net.py", "json.load(open('cfg.json'))", ["cfg.json"]),
    "a folder above": ("sub/net.py", "open(HERE.parent / 'conf' / 'net.yaml')", ["conf/net.yaml"]),
    "its docstring": ("net.py", "CFG = json.loads(__doc__)", []),
}
UNKNOWN = {
    "import_module, computed": ("net.py", "def build(n):\n    importlib.import_module(n)", ["part.py"]),
    "a reader that is handed on": ("net.py", "list(map(open, sys.argv))", ["x.txt"]),
    "an f-string": ("net.py", "def build(n):\n    torch.load(f'w_{n}.pt')", ["w_64.pt"]),
    "a folder of another module": ("net.py", "from paths import DATA\nopen(DATA / 'x.csv')", ["assets/x.csv"]),
    "all of a kind": ("net.py", "for f in HERE.glob('*.csv'):\n    pass", ["x.csv"]),
}
"""The same for models that read or import by a computed name, so that all files beside them count."""
OTHER = {
    "a.py": "import b\n",
    "pkg/__init__.py": "from . import part\n",
    "pkg/part.py": "x = 0\n",
    "pkg/common.py": "x = 0\n",
    "pkg/sub/part.py": "from ..common import x\n",
    "k.cpp": '#include "k.h"\n',
    "lazy/__init__.py": f"{FROM_FILE}def __getattr__(n):\n    return importlib.import_module(f'.{{n}}', __name__)\n",
    "paths.py": f"{FROM_FILE}sys.path.insert(0, 'lib')\nDATA = HERE / 'assets'\n",
}
"""Files beside each model; not all of them are in its key."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def write(project: Path, name: str, text: str) -> Path:
    file = project / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def code(file: Path) -> Code:
    return code_of("trial", OWN, model=Model(str(file.resolve()), "build"))


def keys(file: Path) -> tuple[str, str]:
    model_code = code(file)
    return model_code.key, model_code.model_key


@pytest.mark.parametrize("what", PARTS | UNKNOWN)
def test_editing_any_file_of_a_model_changes_its_keys(project: Path, what: str) -> None:
    name, text, parts = (PARTS | UNKNOWN)[what]
    for other, content in OTHER.items():
        write(project, other, content)
    net = write(project, name, FROM_FILE + text + "\n")
    for part in parts:
        if part.endswith(".zip"):
            archive(project / part, "x = 1")
        elif part not in OTHER:
            write(project, part, "x = 1\n")
    if "namesake" in what:
        write(project, "part.py", "x = 1\n")
    before = keys(net)
    if what in PARTS:
        write(project, "unrelated_notes.md", "nothing\n")
    write(project, "results/plan.json", "{}")
    write(project, "results/cells.csv", "a,b\n")
    assert keys(net) == before
    for part in [*parts, name]:
        if part.endswith(".zip"):
            archive(project / part, "x = 2")
        else:
            old = (project / part).read_text()
            write(project, part, f'"""Other words"""\n{old}' if what == "its docstring" else old + "y = 2\n")
        after = keys(net)
        assert after[0] != before[0], part
        assert after[1] != before[1], part
        before = after


def archive(file: Path, text: str) -> None:
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("zipped.py", text)


def test_editing_files_that_a_model_does_not_name_keeps_its_keys(project: Path) -> None:
    net = write(project, "net.py", FROM_FILE + "import layers\njson.load(open('cfg.json'))\nfiles = load = 1\n")
    for name in ("layers.py", "cfg.json", "other.py", "other.json", "lib/layers.py"):
        write(project, name, "x = 1\n")
    before = keys(net)
    for name in ("other.py", "other.json", "lib/layers.py"):
        write(project, name, "x = 2\n")
    write(project, "layers.py", "x = 1  # a comment\n")
    assert keys(net) == before


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("NAMES = ['t']", False),
        ("open('w.txt', 't')", False),
        ("names.get('t')", False),
        ("WIDE = f'{torch}t'", False),
        ("open(HERE.parents[1] / 't' / torch)", True),
        ("DATA = HERE.parents[1] / 't'", True),
        ("DATA = os.path.join(HERE, '..', '..', 't')", True),
        ("sys.path.insert(0, 't')", True),
        ("CIFAR10(root='t')", True),
        ("NAMES = ['t/other.py']", True),
    ],
)
def test_a_word_names_a_folder_outside_of_the_models_folder_only_if_it_is_used_as_a_path(
    project: Path, monkeypatch: pytest.MonkeyPatch, text: str, counts: bool
) -> None:
    net = write(project, "mine/models/net.py", f"{FROM_FILE}{text}\n")
    write(project, "mine/models/w.txt", "x")
    write(project, "t/other.py", "x = 1\n")
    (project / "elsewhere").mkdir()
    monkeypatch.chdir(project / "elsewhere")
    before = keys(net)
    write(project, "t/other.py", "x = 2\n")
    assert (keys(net) != before) == counts


def test_sources_in_a_folder_named_by_a_word_are_not_searched(project: Path) -> None:
    net = write(project, "net.py", "NAMES = ['t']\n")
    write(project, "t/other.py", "open('../far.json')\n")
    write(project, "far.json", "1")
    before = keys(net)
    write(project, "far.json", "2")
    assert keys(net) == before
    write(project, "t/other.py", "open('../far.json')\nx = 2\n")
    assert keys(net) != before


def test_unreadable_files_are_skipped(project: Path) -> None:
    """These are too long names, home folders of unknown users, kernel files and dangling links."""
    names = ["x" * 280, "/" + "x" * 280, "sub/" + "x" * 280, "~nobody-here/x", "~", "/", "..", "/proc/self/stat"]
    reads = "".join(f"open({name!r})\n" for name in names)
    net = write(
        project, "net.py", f"{FROM_FILE}sys.path.insert(0, '~nobody-here')\n{reads}for f in os.listdir('sub'): pass\n"
    )
    write(project, "sub/w.bin", "1")
    (project / "sub" / "gone.py").symlink_to(project / "nowhere.py")
    before = keys(net)
    assert keys(net) == before
    write(project, "sub/w.bin", "2")
    assert keys(net) != before


@pytest.mark.parametrize("name", ["helper.py", "named.py", "data.json", "fast.so"])
def test_a_file_that_vanishes_after_it_was_listed_is_skipped(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    net = write(project, "net.py", f"{FROM_FILE}import fast, helper\nopen('named.py')\nopen('data.json')\n")
    for other in ("helper.py", "named.py", "data.json", "fast.so"):
        write(project, other, "x = 1\n")
    before = keys(net)
    stat = Path.stat

    def vanished(path: Path, **options: Any) -> os.stat_result:
        if path.name == name and sys._getframe(1).f_code.co_name != "is_file":
            raise FileNotFoundError(path)
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", vanished)
    skipped = code(net)
    assert skipped.model_key != before[1]
    assert not [part for part in skipped.of_model if name.partition(".")[0] in part]


def test_a_large_file_counts_by_size_and_samples(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_files, "MOST_READ_BYTES", 4)
    net = write(project, "net.py", "open('w.bin')\n")
    weights = write(project, "w.bin", "12345")
    before = keys(net)
    os.utime(weights, ns=(10**18, 10**18))
    assert keys(net) == before
    for text in ("12346", "123456"):
        weights.write_text(text)
        after = keys(net)
        assert after[0] != before[0]
        assert after[1] != before[1]
        before = after


def test_the_measurement_key_covers_the_other_files_only(project: Path) -> None:
    net = write(project, "net.py", "width = 1\n")
    before = code(net)
    write(project, "net.py", "width = 2\n")
    after = code(net)
    assert after.model_key != before.model_key
    assert after.measurement_key == before.measurement_key
    name = next(name for name in after.digests if name not in after.of_model)
    assert replace(after, digests={**after.digests, name: "edited"}).measurement_key != after.measurement_key
    assert replace(after, packages={"torch": "0"}).measurement_key == after.measurement_key
    assert not [name for name in after.of_model if name.startswith("crossover.")]


@pytest.mark.parametrize(
    "change",
    [
        {"name": "another"},
        {"mode": "infer"},
        {"names": ("small", "large")},
        {"table": Table("samples.csv", "label")},
    ],
)
def test_another_function_or_setting_of_the_same_file_has_another_model_key(
    project: Path, change: dict[str, Any]
) -> None:
    write(project, "samples.csv", "a,label\n1,0\n")
    model = Model(str(write(project, "net.py", "width = 1\n").resolve()), "build")
    keys_of = [code_of("trial", OWN, model=made) for made in (model, replace(model, **change))]
    assert keys_of[0].model_key != keys_of[1].model_key
    assert keys_of[0].measurement_key == keys_of[1].measurement_key


def test_the_name_of_a_models_folder_is_no_part_of_its_keys(project: Path) -> None:
    """Two checkouts within the working directory, whose files name and import others below, above and beside them."""
    write(project, "shared.json", "{}")
    for folder in ("old", "deep/new"):
        write(project, f"{folder}/conf/net.yaml", "a: 1\n")
        write(project, f"{folder}/nets/layers.py", "x = 1\n")
        text = "import layers\nopen('shared.json')\nopen(HERE.parent / 'conf' / 'net.yaml')\n"
        write(project, f"{folder}/nets/net.py", FROM_FILE + text)
    assert keys(project / "old/nets/net.py") == keys(project / "deep/new/nets/net.py")
    write(project, "deep/new/conf/net.yaml", "a: 2\n")
    assert keys(project / "old/nets/net.py")[1] != keys(project / "deep/new/nets/net.py")[1]


def test_the_name_of_a_package_is_no_part_of_the_keys_of_its_model(project: Path) -> None:
    for package in ("old_pkg", "new_pkg"):
        write(project, f"{package}/__init__.py", "")
        write(project, f"{package}/layers.py", "x = 1\n")
        write(project, f"{package}/net.json", "{}")
        write(project, f"{package}/net.py", FROM_FILE + "from .layers import x\nopen(HERE / 'net.json')\n")

    def key(package: str) -> str:
        return code_of("trial", OWN, model=Model(f"{package}.net", "build")).model_key

    assert key("old_pkg") == key("new_pkg")
    for part, text in (("layers.py", "x = 2\n"), ("net.json", "[]")):
        before = write(project, f"new_pkg/{part}", text) and key("new_pkg")
        assert before != key("old_pkg")
        write(project, f"old_pkg/{part}", text)
        assert before == key("old_pkg")


@pytest.mark.parametrize(
    "text",
    [
        "from os import environ as E\nE.get('WIDTH')",
        "os.path.expandvars('${WIDTH}.bin')",
        "import variables\nvariables.e('WIDTH')",
    ],
)
def test_an_environment_variable_changes_the_key(project: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    write(project, "variables.py", "import os\ndef e(k):\n    return os.environ[k]\n")
    net = write(project, "net.py", f"import os\n{text}\n")
    before = keys(net)
    monkeypatch.setenv("WIDTH", "2")
    wider = keys(net)
    monkeypatch.setenv("UNRELATED", "2")
    assert before[0] != wider[0] == keys(net)[0]
    assert before[1] == wider[1]  # the same on another machine
    monkeypatch.setenv("WIDTH", "w.bin")
    named = keys(net)
    write(project, "w.bin", "1")
    assert keys(net)[1] != named[1]


class Site:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "site-packages"
        self.install("mylib", "x = 1\n")
        monkeypatch.setattr(sys, "path", [str(self.folder), *sys.path])

    def install(self, name: str, text: str, version: str = "1.0", needs: str = "", source: str | None = None) -> None:
        """Install a package as pip does from an index, or from a `source`."""
        write(self.folder, f"{name}/__init__.py", text)
        facts = f"{name}-{version}.dist-info"
        for old in self.folder.glob(f"{name}-*.dist-info"):
            shutil.rmtree(old)
        requires = f"Requires-Dist: {needs}\n" if needs else ""
        write(self.folder, f"{facts}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}")
        if source:
            write(self.folder, f"{facts}/direct_url.json", source)
        write(self.folder, f"{facts}/RECORD", f"{name}/__init__.py,sha256={hash(text)},{len(text)}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    version_of.cache_clear()
    return Site(tmp_path, monkeypatch)


def installed_key(net: Path) -> str:
    version_of.cache_clear()
    return keys(net)[0]


def test_versions_of_installed_packages_and_their_dependencies_change_the_key(project: Path, site: Site) -> None:
    net = write(project, "net.py", "import mylib\n")
    before = installed_key(net)
    assert code(net).packages["mylib"] == "1.0"
    site.install("mylib", "x = 1\n", version="1.1")
    newer = installed_key(net)
    site.install("mylib", "x = 1\n", version="1.1", needs="needed>=2")
    site.install("needed", "x = 1\n", version="2.0")
    needing = installed_key(net)
    site.install("needed", "x = 1\n", version="2.1")
    assert len({before, newer, needing, installed_key(net)}) == 4


def test_editing_a_package_installed_from_a_folder_changes_the_key(project: Path, site: Site) -> None:
    net = write(project, "net.py", "import mylib\n")
    site.install("mylib", "x = 1\n", source='{"url": "file:///home/me/mylib", "dir_info": {}}')
    before = installed_key(net)
    site.install("mylib", "x = 2\n", source='{"url": "file:///home/me/mylib", "dir_info": {}}')
    assert installed_key(net) != before
