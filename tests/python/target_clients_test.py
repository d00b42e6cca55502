"""Programs that take files take those of a target that is not there: loaders of tensors, clients of
object stores. The buckets are moto's, on the loopback address."""

import io
import os
import pathlib
import re

import numpy as np
import pytest
import reshard

boto3 = pytest.importorskip("boto3")
moto_server = pytest.importorskip("moto.server")
safetensors_numpy = pytest.importorskip("safetensors.numpy")
fsspec = pytest.importorskip("fsspec")
obstore = pytest.importorskip("obstore")

ROOT = pathlib.Path(__file__).parents[2]
STRATEGIES = {"src_strategy": "ckpt_8/strategy", "dst_strategy": "new/strategy"}
BLOCK = re.compile(r"```python\n(import boto3\n.*?)```", re.S)


@pytest.fixture(scope="module")
def folder(samples):
    before = os.getcwd()
    os.chdir(samples)
    yield samples
    os.chdir(before)


@pytest.fixture(scope="module")
def converted(folder, tmp_path_factory):
    """The files of a conversion, by their paths."""
    out = tmp_path_factory.mktemp("converted")
    reshard.convert("ckpt_8", out, **STRATEGIES)
    return {file.path: (out / file.path).read_bytes() for file in reshard.target("ckpt_8", **STRATEGIES)}


@pytest.fixture(scope="module")
def store():
    """A client of a server that has the bucket `bucket`."""
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    before = dict(os.environ)
    os.environ.update(
        AWS_ENDPOINT_URL=f"http://{host}:{port}",
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
        AWS_DEFAULT_REGION="us-east-1",
        NO_PROXY="127.0.0.1",
    )
    client = boto3.client("s3")
    client.create_bucket(Bucket="bucket")
    yield client
    server.stop()
    os.environ.clear()
    os.environ.update(before)


def uploaded(store, prefix):
    listed = store.list_objects_v2(Bucket="bucket", Prefix=prefix)["Contents"]
    return {
        found["Key"].removeprefix(prefix): store.get_object(Bucket="bucket", Key=found["Key"])["Body"].read()
        for found in listed
    }


def test_the_recipes_put_a_target_into_a_bucket(store, converted):
    blocks = BLOCK.findall((ROOT / "docs" / "guide" / "recipes.md").read_text(encoding="utf-8"))
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, "recipes.md", "exec"), {})  # pylint: disable=exec-used
        assert uploaded(store, "ckpt_4/") == converted
        for path in converted:
            store.delete_object(Bucket="bucket", Key=f"ckpt_4/{path}")


def test_a_part_that_fails_is_gathered_again(store, folder, converted):
    """The body of a request is read anew for a retry: no copy of it is kept."""
    view = reshard.target("ckpt_8", **STRATEGIES)
    file = view.files[0]
    reads = []
    refused = []

    def refuse_once(request, **_):
        if not refused:
            refused.append(request.url)
            # The server has taken all of it, and then had no answer.
            return type(
                "Response",
                (),
                {"status_code": 503, "headers": {}, "content": request.body.read() and b"", "raw": None},
            )()
        return None

    class Watched(io.RawIOBase):
        def __init__(self):
            self.stream = view.open(file, offset=5, length=70_000)

        def read(self, size=-1):
            found = self.stream.read(size)
            reads.append(len(found))
            return found

        def seek(self, offset, whence=0):
            return self.stream.seek(offset, whence)

        def tell(self):
            return self.stream.tell()

    store.meta.events.register("before-send.s3.PutObject", refuse_once)
    try:
        store.put_object(Bucket="bucket", Key="part", Body=Watched())
    finally:
        store.meta.events.unregister("before-send.s3.PutObject", refuse_once)
    assert refused and sum(reads) >= 2 * 70_000
    found = store.get_object(Bucket="bucket", Key="part")["Body"].read()
    assert found == converted[file.path][5:70_005]


def test_obstore_takes_streams(folder, converted):
    memory = obstore.store.MemoryStore()
    for file in reshard.target("ckpt_8", **STRATEGIES):
        obstore.put(memory, file.path, reshard.target("ckpt_8", **STRATEGIES).open(file))
        assert bytes(obstore.get(memory, file.path).bytes()) == converted[file.path]


def test_fsspec_takes_streams(folder, converted):
    memory = fsspec.filesystem("memory")
    view = reshard.target("ckpt_8", **STRATEGIES)
    for file in view.files:
        with memory.open(f"/{file.path}", "wb") as out, view.open(file) as stream:
            while piece := stream.read(100_000):
                out.write(piece)
        assert memory.cat_file(f"/{file.path}") == converted[file.path]


def test_safetensors_loads_streams(folder):
    view = reshard.target("ckpt_8", src_strategy="ckpt_8/strategy", format="safetensors", dtype="*=float32")
    loaded = safetensors_numpy.load(view.open(view.files[0]).read())
    with reshard.open("ckpt_8", "ckpt_8/strategy") as source:
        assert loaded.keys() == source.keys()
        for name, array in loaded.items():
            assert np.array_equal(array, source[name].numpy().astype(array.dtype)), name
