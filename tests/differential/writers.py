"""Writes the files a case starts from: checkpoints and strategies.

A protobuf writer of a few lines stands in for MindSpore's own, so that sources
do not depend on the program they are compared with, and so that a file may hold
what MindSpore reads but never writes (a scalar's dims, any cut of a content).
The formats are described in SPEC.md of format/mindspore_checkpoint and of
src/mindspore.
"""

import json
import math
import struct
import zlib

# MindSpore writes contents above this many bytes as several adjacent Values.
VALUE_LIMIT = 512 * 1024 * 1024


def _varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field, value):
    return _varint(field << 3) + _varint(value)


def _block(field, *pieces):
    length = sum(len(piece) for piece in pieces)
    return b"".join((_varint(field << 3 | 2), _varint(length), *pieces))


def _list(field, values):
    """A message whose repeated field 1 is not packed, such as DevMatrix."""
    return _block(field, *(_number(1, value) for value in values))


def checkpoint_value(name, dtype, dims, content):
    """Returns a Checkpoint message of one Value."""
    tensor = _block(2, *(_number(1, dim) for dim in dims),
                    _block(2, dtype.encode()), _block(3, content))
    return _block(1, _block(1, name.encode()), tensor)


def checkpoint_bytes(rows, limit=VALUE_LIMIT, crc=False):
    """Returns the file of rows of (name, dtype, dims, content bytes).

    limit: the bytes of content from which a Value is cut; crc: adds the
    trailer that MindSpore writes with crc_check.
    """
    values = [checkpoint_value(name, dtype, dims, content[begin:begin + limit])
              for name, dtype, dims, content in rows
              for begin in range(0, max(len(content), 1), limit)]
    data = b"".join(values)
    if crc:
        data += b"crc_num" + zlib.crc32(data).to_bytes(10, "big")
    return data


def write_checkpoint(path, rows, limit=VALUE_LIMIT, crc=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    digest = 0
    with open(path, "wb") as file:
        for row in rows:
            # One at a time: some are larger than memory holds twice.
            data = checkpoint_bytes([row], limit)
            file.write(data)
            digest = zlib.crc32(data, digest)
        if crc:
            file.write(b"crc_num" + digest.to_bytes(10, "big"))


# In the order in which the safetensors library writes tensors: name of the
# dtype there, by MindSpore's name.
SAFETENSORS_DTYPES = {
    "UInt64": "U64", "Int64": "I64", "Float64": "F64", "Float32": "F32",
    "UInt32": "U32", "Int32": "I32", "BFloat16": "BF16", "Float16": "F16",
    "UInt16": "U16", "Int16": "I16", "Int8": "I8", "UInt8": "U8",
    "Bool": "BOOL",
}


def safetensors_bytes(rows, metadata, rng=None):
    """Returns the file that the library writes of rows of (name, dtype, dims,
    content bytes), whatever their order; with `rng` in some other order."""
    order = list(SAFETENSORS_DTYPES)
    rows = sorted(rows, key=lambda row: (order.index(row[1]), row[0]))
    if rng:
        rng.shuffle(rows)
    header, end = ({"__metadata__": metadata} if metadata else {}), 0
    for name, dtype, dims, content in rows:
        dims = [] if dims == [0] and content else list(dims)
        header[name] = {"dtype": SAFETENSORS_DTYPES[dtype], "shape": dims,
                        "data_offsets": [end, end + len(content)]}
        end += len(content)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False)
    text = text.encode()
    text += b" " * (-len(text) % 8)
    return b"".join((struct.pack("<Q", len(text)), text,
                     *(row[3] for row in rows)))


def write_safetensors(path, rows, metadata):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(safetensors_bytes(rows, metadata))


def huggingface_folder(rows, limit):
    """Returns the files of a Hugging Face folder by name: rows in order, in
    shards of at most `limit` bytes."""
    shards, current, size = [], [], 0
    for row in rows:
        if len(row[3]) > limit:
            shards.append([row])
            continue
        if size + len(row[3]) > limit:
            shards.append(current)
            current, size = [], 0
        current.append(row)
        size += len(row[3])
    if current:
        shards.append(current)
    if len(shards) == 1:
        return {"model.safetensors":
                safetensors_bytes(shards[0], {"format": "pt"})}
    files, weight_map = {}, {}
    for number, shard in enumerate(shards, 1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        files[name] = safetensors_bytes(shard, {"format": "pt"})
        weight_map.update((row[0], name) for row in shard)
    elements = sum(math.prod([] if row[2] == [0] and row[3] else row[2])
                   for row in rows)
    index = {"metadata": {"total_parameters": elements,
                          "total_size": sum(len(row[3]) for row in rows)},
             "weight_map": weight_map}
    text = json.dumps(index, indent=2, sort_keys=True) + "\n"
    files["model.safetensors.index.json"] = text.encode()
    return files


def unified_folder(rows, rest, parts):
    """Returns the files of a unified folder by name: rows in `parts` files,
    and rows that are in no map."""
    files, places = {}, {}
    for number in range(parts):
        name = f"part{number}.safetensors"
        files[name] = safetensors_bytes(rows[number::parts], {"format": "ms"})
        places.update((row[0], name) for row in rows[number::parts])
    index = {"metadata": {"total_size": sum(len(row[3]) for row in rows)},
             "weight_map": places}
    files["param_name_map.json"] = json.dumps(index, indent=4).encode()
    if rest:
        files["hyper_param.safetensors"] = safetensors_bytes(
            rest, {"format": "ms"})
    return files


def group_info(ranks):
    """Returns a group_info.pb: these ranks hold the same weights."""
    return _block(2, _block(1, *map(_varint, ranks)))


def read_safetensors(path):
    """Returns rows of (name, dtype, dims, content) in data order."""
    data = path.read_bytes()
    size, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    names = {value: key for key, value in SAFETENSORS_DTYPES.items()}
    rows = [(name, names[entry["dtype"]], entry["shape"],
             data[8 + size + entry["data_offsets"][0]:
                  8 + size + entry["data_offsets"][1]])
            for name, entry in header.items()]
    return sorted(rows, key=lambda row: header[row[0]]["data_offsets"])


def _layout_item(name, layout, split_shape, field):
    maps = layout.tensor_map if layout.nested else (layout.tensor_map,)
    layouts = [_list(1, layout.dev_matrix)]
    layouts += [_list(2, entries) for entries in maps]
    layouts += [_list(3, split_shape), _list(4, ())]
    layouts += [_number(5, field), _number(6, layout.opt_step),
                _number(7, layout.opt_size)]
    return _block(3, _block(1, name.encode()), _block(2, *layouts))


def _strategy_item(node, stage, strategies):
    lists = [_list(2, strategy) for strategy in strategies]
    return _block(2, _block(1, node.encode()),
                  _block(2, _number(1, stage), *lists))


def strategy_protobuf(nodes, layouts, shapes, fields=None):
    """Returns the bytes of a strategy file.

    nodes: rows of (node name, stage, strategies); layouts: Layout by name;
    shapes: full shapes for param_split_shape, where some training code puts
    them and where a conversion does not look; fields: by name, likewise.
    """
    out = [_number(1, 0)]
    out += [_strategy_item(*node) for node in nodes]
    out += [_layout_item(name, layout, shapes.get(name, ()),
                         (fields or {}).get(name, 0))
            for name, layout in layouts.items()]
    return b"".join(out)


def strategy_json(nodes, layouts, shapes):
    """As strategy_protobuf, in the JSON form, which has no nested maps."""
    layout_items = {}
    for name, layout in layouts.items():
        layout_items[name] = {
            "dev_matrix": list(layout.dev_matrix),
            "field": 0,
            "opt_weight_shard_size": layout.opt_size,
            "opt_weight_shard_step": layout.opt_step,
            "tensor_map": list(layout.tensor_map),
        }
        if name in shapes:
            layout_items[name]["tensor_shape"] = list(shapes[name])
    strategy_items = {node: {"parallel_strategy": strategies, "stage": stage}
                      for node, stage, strategies in nodes}
    return json.dumps({
        "current_stage": 0,
        "parallel_layout_item": layout_items,
        "parallel_strategy_item": strategy_items,
    }, indent=2).encode()
