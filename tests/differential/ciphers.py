"""Encrypted checkpoints by libcrypto itself: no code of reshard, and no
package that has to be installed. src/io and format/mindspore_checkpoint/SPEC.md
describe the blocks."""

import ctypes
import ctypes.util
import itertools
import struct

MODES = {"AES-GCM": 0x7F3A5ED8, "AES-CBC": 0x7F3A5ED9}
_GET_TAG, _SET_TAG = 0x10, 0x11

_crypto = ctypes.CDLL(ctypes.util.find_library("crypto") or "libcrypto.so.3")
_crypto.EVP_CIPHER_CTX_new.restype = ctypes.c_void_p


def _run(mode, key, iv, data, tag=None, encrypt=True):
    """Returns what a cipher makes of data, and its tag."""
    kind = getattr(_crypto, f"EVP_aes_{8 * len(key)}_{mode[-3:].lower()}")
    kind.restype = ctypes.c_void_p
    context = ctypes.c_void_p(_crypto.EVP_CIPHER_CTX_new())
    out = ctypes.create_string_buffer(len(data) + 32)
    size, more = ctypes.c_int(), ctypes.c_int()
    seal = ctypes.create_string_buffer(tag or bytes(16), 16)
    steps = [lambda: _crypto.EVP_CipherInit_ex(
        context, ctypes.c_void_p(kind()), None, key, iv, int(encrypt))]
    if tag:
        steps.append(lambda: _crypto.EVP_CIPHER_CTX_ctrl(
            context, _SET_TAG, 16, seal))
    steps.append(lambda: _crypto.EVP_CipherUpdate(
        context, out, ctypes.byref(size), data, len(data)))
    steps.append(lambda: _crypto.EVP_CipherFinal_ex(
        context, ctypes.byref(out, size.value), ctypes.byref(more)))
    if encrypt and mode == "AES-GCM":
        steps.append(lambda: _crypto.EVP_CIPHER_CTX_ctrl(
            context, _GET_TAG, 16, seal))
    try:
        if not all(step() == 1 for step in steps):
            raise ValueError("another key, or a damaged block")
    finally:
        _crypto.EVP_CIPHER_CTX_free(context)
    return out.raw[:size.value + more.value], seal.raw


def encrypted(plain, key, mode, rng, sizes):
    """Returns plain bytes as MindSpore encrypts them, in blocks of `sizes`, by
    turns."""
    out, begin = [], 0
    for size in itertools.cycle(sizes):
        if begin >= len(plain):
            break
        block = plain[begin:begin + size]
        begin += size
        iv = rng.randbytes(16)
        cipher, tag = _run(mode, key, iv[:12] if mode == "AES-GCM" else iv,
                           block)
        out.append(struct.pack("<I", MODES[mode]))
        if mode == "AES-GCM":
            out.append(tag)
        out.append(struct.pack("<II", 24 + len(cipher), 16) + iv)
        out.append(struct.pack("<I", len(cipher)) + cipher)
    return b"".join(out)


def is_encrypted(data):
    return data[:4] in [struct.pack("<I", magic) for magic in MODES.values()]


def decrypted(data, key):
    out, at = [], 0
    modes = {magic: mode for mode, magic in MODES.items()}
    while at < len(data):
        magic, = struct.unpack_from("<I", data, at)
        mode, tag, at = modes[magic], None, at + 4
        if mode == "AES-GCM":
            tag, at = data[at:at + 16], at + 16
        _, length = struct.unpack_from("<II", data, at)
        iv, at = data[at + 8:at + 8 + length], at + 8 + length
        size, = struct.unpack_from("<I", data, at)
        cipher, at = data[at + 4:at + 4 + size], at + 4 + size
        out.append(_run(mode, key, iv[:12] if tag else iv, cipher, tag,
                        encrypt=False)[0])
    return b"".join(out)
