"""Reads what a conversion has written, by a few lines that share nothing with
reshard. Every function returns (dtype, dims, content) by parameter name."""

import json
import struct
import zlib
from pathlib import Path

import ciphers
from writers import SAFETENSORS_DTYPES

_NAMES = {value: key for key, value in SAFETENSORS_DTYPES.items()}
INDEXES = ("param_name_map.json", "model.safetensors.index.json")


def _varint(data, at):
    value, shift = 0, 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7


def _fields(data):
    """Yields (number, value) of a message: an integer, or a view of bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == 2:
            value, at = data[at:at + value], at + value
        yield tag >> 3, value


def checkpoint(data):
    """Parses a `.ckpt` file; a CRC that it states has to be right."""
    if data[-17:-10] == b"crc_num":
        if int.from_bytes(data[-10:], "big") != zlib.crc32(data[:-17]):
            raise ValueError("another CRC")
        data = data[:-17]
    out = {}
    for _, value in _fields(memoryview(data)):
        parts = dict(_fields(value))
        name, dims, dtype, content = bytes(parts[1]).decode(), [], None, b""
        for number, field in _fields(parts[2]):
            if number == 1:
                dims.append(field)
            elif number == 2:
                dtype = bytes(field).decode()
            else:
                content = bytes(field)
        if name in out:
            if out[name][:2] != (dtype, dims):
                raise ValueError(f"{name} has Values that do not fit")
            content = out[name][2] + content
        out[name] = (dtype, dims, content)
    return {name: (dtype, [] if dims == [0] and content else dims, content)
            for name, (dtype, dims, content) in out.items()}


def safetensors_crcs(rows):
    """Returns the CRCs that a file may state: MindSpore's, for which an integer
    that is no array counts as so many zero bytes as it says, and that of the
    bytes as they are, where MindSpore has none."""
    digest = plain = 0
    for name in sorted(rows):
        dtype, dims, content = rows[name]
        digest, plain = (zlib.crc32(name.encode(), crc)
                         for crc in (digest, plain))
        plain = zlib.crc32(content, plain)
        value = int.from_bytes(content, "little", signed=dtype[0] != "U")
        if not dims and "Int" in dtype and value >= 0:
            content = bytes(value)
        digest = zlib.crc32(content, digest)
    return digest, plain


def safetensors(data):
    """Parses a safetensors file; returns its tensors and its metadata."""
    size, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", {})
    body, end, out = data[8 + size:], 0, {}
    for name, entry in sorted(header.items(),
                              key=lambda item: item[1]["data_offsets"]):
        begin, after = entry["data_offsets"]
        if begin != end:
            raise ValueError(f"{name} begins at {begin}, not at {end}")
        end = after
        out[name] = (_NAMES.get(entry["dtype"], entry["dtype"]),
                     entry["shape"], body[begin:after])
    if end != len(body):
        raise ValueError("bytes behind the last tensor")
    if "crc_num" in metadata and int(metadata["crc_num"]) not in (
            safetensors_crcs(out)):
        raise ValueError("another CRC")
    return out, metadata


def file(path, key=None):
    data = Path(path).read_bytes()
    if Path(path).suffix == ".safetensors":
        return safetensors(data)[0]
    if key and data and not ciphers.is_encrypted(data):
        raise ValueError(f"{path} is not encrypted")
    return checkpoint(ciphers.decrypted(data, key) if key else data)


def folder(path):
    """Reads a folder of full tensors by its index."""
    indexes = [path / name for name in INDEXES if (path / name).exists()]
    if not indexes:
        return file(path / "model.safetensors")
    index = json.loads(indexes[0].read_text())
    files = {name: file(path / name)
             for name in set(index["weight_map"].values())}
    out = {name: files[place][name]
           for name, place in index["weight_map"].items()}
    if len(out) != sum(map(len, files.values())):
        raise ValueError("a file has a tensor that the index does not name")
    if index["metadata"]["total_size"] != sum(
            len(content) for _, _, content in out.values()):
        raise ValueError("another total_size")
    if (path / "hyper_param.safetensors").exists():
        rest = file(path / "hyper_param.safetensors")
        if rest.keys() & out.keys():
            raise ValueError("hyper_param.safetensors repeats a tensor")
        out.update(rest)
    return out
