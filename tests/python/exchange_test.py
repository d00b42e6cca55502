"""Tensors handed to others: DLPack capsules, torch, MindSpore; memory that may be written to."""

import ctypes
import gc
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import reshard
import reshard.mindspore

ml_dtypes = pytest.importorskip("ml_dtypes")

# DLPack's type code, its bits, and NumPy's dtype.
TYPES = {
    "Int8": (0, np.int8),
    "UInt16": (1, np.uint16),
    "Int64": (0, np.int64),
    "Float16": (2, np.float16),
    "Float32": (2, np.float32),
    "Float64": (2, np.float64),
    "Bool": (6, np.bool_),
    "Complex64": (5, np.complex64),
    "BFloat16": (4, ml_dtypes.bfloat16),
    "Float8E4M3FN": (10, ml_dtypes.float8_e4m3fn),
    "Float8E5M2": (12, ml_dtypes.float8_e5m2),
}
if hasattr(ml_dtypes, "float8_e8m0fnu"):
    TYPES["Float8E8M0"] = (14, ml_dtypes.float8_e8m0fnu)


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    """A file with a tensor of each type, named by it, a scalar, and an empty one."""
    path = tmp_path_factory.mktemp("typed") / "typed.safetensors"
    entries = [
        {"name": name, "data": np.arange(24).reshape(4, 6).astype(dtype)}
        for name, (_, dtype) in TYPES.items()
    ]
    entries.append({"name": "scalar", "data": np.array(2.5, np.float32)})
    entries.append({"name": "empty", "data": np.empty((0, 3), np.float32)})
    reshard.mindspore.save_checkpoint(entries, str(path), format="safetensors")
    return path


class DlTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Unversioned(ctypes.Structure):
    _fields_ = [("tensor", DlTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DlTensor),
    ]


get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
get_pointer.restype = ctypes.c_void_p
get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def managed(capsule, versioned):
    name = b"dltensor_versioned" if versioned else b"dltensor"
    kind = Versioned if versioned else Unversioned
    return ctypes.cast(get_pointer(capsule, name), ctypes.POINTER(kind)).contents


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("name", [*TYPES, "scalar", "empty"])
def test_a_capsule_says_what_the_tensor_is(typed, name, versioned):
    tensor = reshard.open(typed)[name]
    capsule = tensor.__dlpack__(max_version=(1, 0) if versioned else None)
    found = managed(capsule, versioned)
    if versioned:
        assert (found.major, found.flags) == (1, 0)
    dl = found.tensor
    code = TYPES[name][0] if name in TYPES else 2
    assert (dl.code, dl.bits, dl.lanes) == (code, 8 * tensor.itemsize, 1)
    assert (dl.device_type, dl.device_id) == tensor.__dlpack_device__() == (1, 0)
    assert tuple(dl.shape[: dl.ndim]) == tensor.shape
    assert ctypes.string_at(dl.data, tensor.nbytes) == tensor[...].tobytes()
    expected = [stride // tensor.itemsize for stride in np.empty(tensor.shape, tensor.dtype).strides]
    if tensor.size:
        assert dl.strides[: dl.ndim] == expected


@pytest.mark.parametrize("versioned", [False, True])
def test_a_capsule_keeps_its_memory_until_it_goes(typed, versioned):
    tensor = reshard.open(typed)["Float32"]
    array = tensor.numpy()
    array[:] = 7
    before = sys.getrefcount(array)
    capsule = reshard._exchange.capsule(array, "Float32", None, (1, 0) if versioned else None)
    assert sys.getrefcount(array) > before or sys.getrefcount(array.base) > 0
    address = managed(capsule, versioned).tensor.data
    assert address == array.ctypes.data
    del array
    gc.collect()
    assert ctypes.string_at(address, 4) == np.float32(7).tobytes()
    del capsule


def test_numpy_takes_a_capsule(typed):
    tensor = reshard.open(typed)["Float32"]
    array = np.from_dlpack(tensor)
    assert array.dtype == np.float32 and array.tobytes() == tensor[...].tobytes()


@pytest.mark.parametrize("name", ("BFloat16", "Float8E4M3FN"))
def test_numpy_has_no_such_type_for_a_capsule(typed, name):
    with pytest.raises((RuntimeError, BufferError), match="dtype"):
        np.from_dlpack(reshard.open(typed)[name])


@pytest.mark.parametrize("keywords", [{"copy": False}, {"stream": 1}, {"dl_device": (2, 0)}])
def test_what_cannot_be_is_a_buffer_error(typed, keywords):
    with pytest.raises(BufferError):
        reshard.open(typed)["Float32"].__dlpack__(**keywords)


def test_private_maps_are_written_to_by_one_alone(typed):
    opened = reshard.open(typed)
    content = typed.read_bytes()
    one, two = (opened["Float64"]._own(mmap=True) for _ in range(2))
    assert not one.flags.owndata and one.flags.writeable and one.flags.aligned
    expected = two.tobytes()
    one[:] = 5
    assert two.tobytes() == expected == opened["Float64"][...].tobytes()
    assert (one == 5).all() and typed.read_bytes() == content


def test_what_lies_in_several_files_is_read_instead(samples):
    opened = reshard.open(samples / "ckpt_8", samples / "ckpt_8" / "strategy")
    weight = opened["lm_head.weight"]
    assert weight._own(mmap=True).tobytes() == weight[...].tobytes()
    assert weight._own(mmap=True).flags.owndata


def in_a_child(code, *arguments):
    """Runs it in a process of its own, which has to end well."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


def test_no_array_that_is_handed_out_ends_the_process(typed):
    # Touches every array, and writes to those that say they may be.
    out = in_a_child(
        """
        import sys, numpy as np, reshard
        ckpt = reshard.open(sys.argv[1])
        count = 0
        for name, t in ckpt.items():
            views = [t.mapped[...], np.asarray(t), t[...], t.numpy(), t._own(True), t._own(False)]
            for array in views:
                array.tobytes()
                count += 1
                if array.flags.writeable and array.size:
                    array[...] = array.dtype.type(1)
                elif array.size:
                    try:
                        array[...] = array.dtype.type(1)
                        raise SystemExit("a read-only array was written to")
                    except ValueError:
                        pass
        print(count)
        """,
        typed,
    )
    assert int(out) == 6 * (len(TYPES) + 2)


@pytest.mark.parametrize("framework", ["torch", "mindspore"])
def test_a_framework_that_is_missing_is_said_before_anything_is_read(
    typed, monkeypatch, framework
):
    monkeypatch.setitem(sys.modules, framework, None)
    with pytest.raises(reshard.UnsupportedError, match=f"^framework='{framework}': .*not installed"):
        reshard.open("nowhere", framework=framework)
    with pytest.raises(ValueError, match="^framework: expected 'numpy', 'torch' or 'mindspore'"):
        reshard.open(typed, framework="jax")


def test_a_checkpoint_gives_numpys_arrays_unless_told_otherwise(typed):
    checkpoint = reshard.open(typed)
    assert type(checkpoint.get_tensor("Float32")) is np.ndarray
    assert {type(array) for array in checkpoint.read().values()} == {np.ndarray}


def test_a_checkpoint_gives_torchs_tensors(typed, samples):
    pytest.importorskip("torch")
    in_a_child(
        """
        import pickle, sys, numpy as np, torch, reshard
        for arguments in (sys.argv[1:2], (sys.argv[2], sys.argv[2] + "/strategy")):
            ckpt = reshard.open(*arguments, framework="torch")
            for name, tensor in [*ckpt.read().items(), *((n, ckpt.get_tensor(n)) for n in ckpt)]:
                assert type(tensor) is torch.Tensor and tuple(tensor.shape) == ckpt[name].shape
                tensor.zero_()
            name = next(iter(ckpt))
            out = np.empty(ckpt[name].shape, ckpt[name].dtype)
            tensor = ckpt.read(out={name: out})[name]
            assert tensor.data_ptr() == out.ctypes.data and out.tobytes() == ckpt[name][...].tobytes()
            assert type(ckpt[name][...]) is np.ndarray
            assert type(pickle.loads(pickle.dumps(ckpt)).get_tensor(name)) is torch.Tensor
            assert type(ckpt.rank(0).get_tensor(name)) is torch.Tensor
        """,
        typed,
        samples / "ckpt_8",
    )


def test_a_checkpoint_gives_mindspores_tensors(typed, samples):
    pytest.importorskip("mindspore")
    in_a_child(
        """
        import pickle, sys, numpy as np, mindspore, reshard
        ckpt = reshard.open(sys.argv[1], sys.argv[1] + "/strategy", framework="mindspore")
        for name, tensor in [*ckpt.read().items(), *((n, ckpt.get_tensor(n)) for n in ckpt)]:
            assert isinstance(tensor, mindspore.Tensor), name
            assert tuple(tensor.shape) == ckpt[name].shape and str(tensor.dtype) == ckpt[name].dtype_name
            assert tensor.get_bytes() == ckpt[name][...].tobytes(), name
        name = next(name for name, t in ckpt.items() if t.dtype_name == "Float32" and t.ndim)
        tensor = ckpt.get_tensor(name)
        tensor[...] = 0.0
        assert type(ckpt[name][...]) is np.ndarray and ckpt[name][...].any()
        for other in (pickle.loads(pickle.dumps(ckpt)), ckpt.rank(0)):
            assert isinstance(other.get_tensor(name), mindspore.Tensor)
        # What this MindSpore has no type for is an array of NumPy's.
        typed = reshard.open(sys.argv[2], framework="mindspore")
        try:
            assert typed.get_tensor("Float8E4M3FN").get_bytes() == typed["Float8E4M3FN"][...].tobytes()
        except reshard.UnsupportedError as error:
            assert "framework='numpy'" in str(error), error
        """,
        samples / "ckpt_8",
        typed,
    )


def test_torch_gets_memory_that_it_may_write_to(typed, samples):
    pytest.importorskip("torch")
    in_a_child(
        """
        import sys, numpy as np, torch, reshard
        for ckpt in (reshard.open(sys.argv[1]), reshard.open(sys.argv[2], sys.argv[2] + "/strategy")):
            for name, t in ckpt.items():
                raw = t[...].tobytes()
                ways = [t.torch(), t.torch(mmap=True)]
                if t.dtype_name != "Complex64":
                    ways.append(torch.from_dlpack(t))
                for tensor in ways:
                    assert tuple(tensor.shape) == t.shape, name
                    found = tensor.contiguous().view(torch.uint8) if tensor.dim() and tensor.numel() else None
                    assert found is None or found.numpy().tobytes() == raw, name
                    tensor.zero_()
                assert t[...].tobytes() == raw
        w = reshard.open(sys.argv[1])
        assert torch.from_dlpack(w["BFloat16"]).dtype == torch.bfloat16
        assert torch.from_dlpack(w["Float8E4M3FN"]).dtype == torch.float8_e4m3fn
        assert torch.from_dlpack(w["Float8E5M2"]).dtype == torch.float8_e5m2
        assert w["BFloat16"].torch().dtype == torch.bfloat16
        """,
        typed,
        samples / "ckpt_8",
    )


def test_mindspore_gets_memory_that_it_may_write_to(typed):
    pytest.importorskip("mindspore")
    in_a_child(
        """
        import sys, numpy as np, mindspore, reshard
        ckpt = reshard.open(sys.argv[1])
        for name, t in ckpt.items():
            for mmap in (False, True):
                try:
                    tensor = t.mindspore(mmap=mmap)
                except reshard.UnsupportedError:
                    assert "Float8" in name, name
                    continue
                assert tuple(tensor.shape) == t.shape and str(tensor.dtype) == t.dtype_name, name
                assert tensor.get_bytes() == t[...].tobytes(), name
        floats = ckpt["Float32"]
        for mmap in (False, True):
            tensor = floats.mindspore(mmap=mmap)
            tensor[0] = 3.0
            assert floats[0, 1] == 1.0
        """,
        typed,
    )
    assert pathlib.Path(typed).exists()
