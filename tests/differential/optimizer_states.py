#!/usr/bin/env python3
"""Lists what optimizers call their own tensors, and compares the list with that of reshard.

Every optimizer of the installed MindSpore (nn, mint.optim, experimental.optim) is made over a small
network, and so are those of MindFormers, if --mindformers names a folder that has the package. What
they add to the network's parameters is sorted into three kinds (src/base/optimizer_states.inc).
Names that only the sources of the packages show, such as those of cells that need several devices,
are read there. --write writes the list; without it the exit code is 1 if the list differs.
"""

import argparse
import ast
import importlib
import inspect
import os
import pathlib
import pkgutil
import sys
import types

os.environ["GLOG_v"] = "4"
os.environ["OMP_NUM_THREADS"] = "1"

import mindspore  # pylint: disable=wrong-import-position
import mindspore.experimental.optim  # pylint: disable=wrong-import-position
from mindspore import nn  # pylint: disable=wrong-import-position

LIST = pathlib.Path(__file__).resolve().parents[2] / "src/base/optimizer_states.inc"
HEAD = """\
// What optimizers call their own tensors: tests/differential/optimizer_states.py writes this list.
//
// WHOLE: a prefix; PREFIX + NAME has the shape of the parameter NAME.
// PART: a prefix; PREFIX + NAME, or PREFIX and a number, has another shape and several elements.
// LONE: a whole name, of a tensor that may have several elements.
//
// Behind each: the packages that use it.

"""

# What a constructor needs besides the parameters; several, if they make other tensors.
ARGUMENTS = {
    "nn.Adam": [{}, {"use_amsgrad": True}],
    "nn.AdaFactor": [{"beta1": 0.9}, {"compression": True}],
    "nn.Lamb": [{"learning_rate": 0.1}],
    "nn.Momentum": [{"learning_rate": 0.1, "momentum": 0.9}, {"learning_rate": [0.1, 0.2], "momentum": 0.9}],
    "nn.RMSProp": [{}, {"centered": True}],
    "mint.SGD": [{"lr": 0.1, "momentum": 0.9}],
    "mint.FusedAdamW": [{}, {"amsgrad": True}],
    "experimental.SGD": [{"lr": 0.1, "momentum": 0.9}],
    "mindformers.Came": [{"learning_rate": 0.1, "beta1": 0.9}],
    "mindformers.FusedAdamW": [{"amsgrad": True}],
    "mindformers.PmaAdamW": [{"fused_algo": "ema"}, {"fused_algo": "sma"}],
    "mindformers.FusedPmaAdamW": [{"fused_algo": "ema"}, {"fused_algo": "sma"}],
}
# They wrap another optimizer or a network; their sources are read.
WRAPPERS = {"Optimizer", "LARS", "OptTFTWrapper"}


class Network(nn.Cell):
    """Parameters of one to four dimensions."""

    def __init__(self):
        super().__init__()
        self.first = nn.Dense(4, 3)
        self.conv = nn.Conv2d(2, 3, 2)
        self.layers = nn.SequentialCell(nn.Dense(3, 2), nn.Dense(2, 5))

    def construct(self, values):
        return self.layers(self.first(values))


class States:
    """(kind, name) and the packages that have it."""

    def __init__(self):
        self.packages = {}

    def add(self, kind, name, package):
        self.packages.setdefault((kind, name), set()).add(package)

    def has(self, name):
        return any(name == known for _, known in self.packages)


def elements(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def add_parameters(parameters, weights, package, states):
    """Adds what an optimizer has besides the network's parameters."""
    for parameter in parameters:
        name, shape = parameter.name, tuple(parameter.shape)
        if name in weights:
            continue
        owner = max((weight for weight in weights if name.endswith(weight)), key=len, default=None)
        if owner is not None and elements(shape) > 1:
            prefix = name[:-len(owner)]
            # A prefix of both kinds is that of tensors which are not always whole copies.
            whole = shape == weights[owner] and prefix.endswith(".")
            states.add("WHOLE" if whole else "PART", prefix, package)
        elif owner is None and elements(shape) > 1:
            states.add("LONE", name, package)


def make_all(package, modules, states):
    """Makes each optimizer that the modules define."""
    made = set()
    base = (nn.Optimizer, mindspore.experimental.optim.Optimizer)
    for module in modules:
        for name, cls in vars(module).items():
            is_own = inspect.isclass(cls) and cls.__module__ == module.__name__
            if not is_own or not issubclass(cls, base) or name in WRAPPERS or name.startswith("_"):
                continue
            for arguments in ARGUMENTS.get(f"{package}.{name}", [{}]):
                network = Network()
                weights = {p.name: tuple(p.shape) for p in network.trainable_params()}
                try:
                    optimizer = cls(network.trainable_params(), **arguments)
                except Exception as error:  # pylint: disable=broad-exception-caught
                    print(f"note: {package}.{name} is known by its source only: {error!r:.100}")
                    continue
                add_parameters(optimizer.get_parameters(), weights, package, states)
                made.add(name)
    if not made:
        sys.exit(f"{package}: made no optimizer")
    print(f"{package}: {len(made)} optimizers")


def literal_beginning(node):
    """Returns the text that an expression is sure to begin with, and whether that is all of it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value, True
    if isinstance(node, ast.JoinedStr) and node.values:
        return literal_beginning(node.values[0])[0], False
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        text, whole = literal_beginning(node.left)
        if not whole:
            return text, False
        more, whole = literal_beginning(node.right)
        return text + more, whole
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):  # "%s%s" % ("mu_", name)
        first = node.right.elts[0] if isinstance(node.right, ast.Tuple) else node.right
        return literal_beginning(first)[0], False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return literal_beginning(node.func.value)[0].split("{")[0], False
    return "", False


def prefixes_in_source(path):
    """Yields the prefixes that a source gives to clones of parameters."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("clone", "clone_state", "_clone_state", "_init_state"):
                given = [word.value for word in node.keywords if word.arg == "prefix"] + node.args[:1]
                text, whole = literal_beginning(given[0]) if given else ("", False)
                # clone("zeros") of a single parameter has no prefix.
                if text and whole and (node.keywords or len(node.args) > 1):
                    yield text + "."
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            if node.targets[0].attr == "name":
                text, whole = literal_beginning(node.value)
                if text.endswith(".") and not whole:
                    yield text


def names_in_source(path):
    """Yields (beginning, whether a parameter's name follows) of names of parameters that are made."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "Parameter":
            continue
        given = [word.value for word in node.keywords if word.arg == "name"] + node.args[1:2]
        text, whole = literal_beginning(given[0]) if given else ("", True)
        if text and not whole:
            yield text, ast.unparse(given[0])


def read_sources(package, folders, states):
    """Adds prefixes that no optimizer was made for. Of tensors that a source makes without cloning,
    those are passed over which are known to be single elements."""
    single = {"mu_", "eta_", "mu_product_", "last_epoch_", "matrix_max", "muon_m.placeholder.",
              "adam_m.placeholder.", "adam_v.placeholder."}
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            for prefix in prefixes_in_source(path):
                states.add("WHOLE", prefix, package)
            if "optim" not in str(path.relative_to(folder.parent)):
                continue
            for name, text in names_in_source(path):
                if name in single or states.has(name):
                    continue
                whole = name.endswith(".") and "name" in text
                states.add("WHOLE" if whole else "PART", name, package)


def modules_of(package):
    return [importlib.import_module(f"{package.__name__}.{module.name}")
            for module in pkgutil.iter_modules(package.__path__)]


def add_mindspore(states):
    root = pathlib.Path(mindspore.__file__).parent
    for package, name in (("nn", "nn.optim"), ("mint", "mint.optim"), ("experimental", "experimental.optim")):
        make_all(package, modules_of(importlib.import_module(f"mindspore.{name}")), states)
    network = Network()
    parameters = network.trainable_params()
    weights = {p.name: tuple(p.shape) for p in parameters}
    grouped = nn.Momentum([{"params": parameters[:2], "lr": [0.1, 0.2]}, {"params": parameters[2:]}], [0.1, 0.2], 0.9)
    for parameter in grouped.get_parameters():
        if parameter.name.startswith("learning_rate_group_") and elements(parameter.shape) > 1:
            states.add("PART", "learning_rate_group_", "nn")
    add_parameters([p for p in grouped.get_parameters() if "learning_rate" not in p.name], weights, "nn", states)
    read_sources("nn", [root / "nn"], states)
    read_sources("mint", [root / "mint" / "optim"], states)
    read_sources("experimental", [root / "experimental" / "optim"], states)
    read_sources("parallel", [root / "parallel"], states)
    read_sources("boost", [root / "boost"], states)


class Stub(types.ModuleType):
    """A module of MindFormers that its optimizers import and do not need to be made."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


class Anything:
    def __getattr__(self, name):
        return Anything()

    def __call__(self, *arguments, **_):
        return arguments[0] if len(arguments) == 1 and inspect.isclass(arguments[0]) else Anything()


def add_mindformers(folder, states):
    """Makes the optimizers of MindFormers' static graphs without the rest of the package."""
    root = pathlib.Path(folder) / "mindformers"
    for name in ("mindformers", "mindformers.core", "mindformers.tools", "mindformers.tools.register",
                 "mindformers.tools.logger", "mindformers.core.context", "mindformers.core.context.build_context"):
        sys.modules[name] = Stub(name)
    package = types.ModuleType("mindformers.core.optim")
    package.__path__ = [str(root / "core" / "optim")]
    sys.modules[package.__name__] = package
    modules = []
    for name in ("adamw", "fused_adamw", "pma_adamw", "fused_pma_adamw", "came", "muon"):
        module = importlib.import_module(f"mindformers.core.optim.{name}")
        modules.append(module)
        vars(package).update({key: value for key, value in vars(module).items() if key == "FusedAdamW"})
    make_all("mindformers", modules, states)
    read_sources("mindformers", [root / "core" / "optim", root / "pynative" / "optimizer", root / "wrapper"], states)


def merged(states):
    """Returns {(kind, name): packages}, each name of one kind."""
    result = {}
    for (kind, name), packages in states.packages.items():
        # "exp_avg_sq_NAME" has the shape of NAME or one element.
        if kind == "WHOLE" and ("PART", name) in states.packages:
            continue
        both = packages | states.packages.get(("WHOLE", name), set()) if kind == "PART" else packages
        result[(kind, name)] = both
    return result


def committed():
    """Returns the list of the file."""
    rows = {}
    for line in LIST.read_text().splitlines():
        if line.startswith("{Kind::"):
            kind, name = line[len("{Kind::k"):line.index("}")].split(", ")
            rows[(kind.upper(), name.strip('"'))] = set(line.split("// ")[1].split(", "))
    return rows


def as_text(rows):
    lines = [f'{{Kind::k{kind.capitalize()}, "{name}"}},  // {", ".join(sorted(packages))}'
             for (kind, name), packages in sorted(rows.items(), key=lambda row: row[0][1])]
    return HEAD + "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mindformers", help="a folder that has the package mindformers")
    parser.add_argument("--write", action="store_true", help="write the list")
    arguments = parser.parse_args()
    states = States()
    add_mindspore(states)
    known = committed() if LIST.exists() else {}
    if arguments.mindformers:
        add_mindformers(arguments.mindformers, states)
    else:
        for (kind, name), packages in known.items():
            if "mindformers" in packages:
                states.add(kind, name, "mindformers")
    found = merged(states)
    if arguments.write:
        LIST.write_text(as_text(found))
        return 0
    for row in sorted(set(found) | set(known)):
        if found.get(row) != known.get(row):
            print(f"{row}: expected {known.get(row)}, found {found.get(row)}")
    return int(found != known)


if __name__ == "__main__":
    sys.exit(main())
