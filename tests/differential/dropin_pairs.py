"""One random case through the functions of MindSpore and of reshard.mindspore: the same files, the
same Parameters, and tensors of the store that are MindSpore's."""

import random

import mindspore
import numpy as np

import mindspore_side
import reshard
import reshard.mindspore
from comparison import PREFIX, Comparison


def _row(name, parameter):
    return (name, str(parameter.dtype), list(parameter.shape), bytes(parameter.data.get_bytes()))


def loaded(path):
    """Returns rows of (name, dtype, dims, content), as reshard.mindspore loads them."""
    parameters = reshard.mindspore.load_checkpoint(path)
    for name, parameter in parameters.items():
        assert isinstance(parameter, mindspore.Parameter) and parameter.name == name, name
        assert parameter.requires_grad and not parameter.layerwise_parallel, name
    return [_row(name, parameter) for name, parameter in parameters.items()]


class PairComparison(Comparison):
    """A case whose conversions are calls of reshard.mindspore in place of runs of the program."""

    def __init__(self, case, folder):
        super().__init__(case, folder, None)
        self.tensors = 0

    def run(self):
        super().run()
        self._compare_loads()
        self._compare_saves(random.Random(self.case.name))
        if not self.case.one_stage_alone:
            self._compare_store()
        return self.failures

    def _call(self, function, *arguments):
        """Returns whether the call returned, and what."""
        try:
            return True, function(*arguments)
        except reshard.Error as error:
            self.failures.append(f"{function.__name__}: {type(error).__name__}: {error}")
            return False, None

    def _merge_stages(self, folder, out):
        return self._call(reshard.mindspore.merge_pipeline_strategys, folder, out)[0]

    def _convert(self, source, out, paths, *options):
        strategies = paths.get("src"), paths.get("dst")
        if not options:
            return self._call(reshard.mindspore.transform_checkpoints, source, out, PREFIX,
                              *strategies)[0]
        _, rank = options
        files = {int(file.parent.name.removeprefix("rank_")): file
                 for file in source.glob("rank_*/net-1_100.ckpt")}
        path = out / f"rank_{rank}" / f"{PREFIX}{rank}.ckpt"
        return self._call(reshard.mindspore.transform_checkpoint_by_rank, rank, files, path,
                          *strategies)[0]

    def _least_list(self, rank):
        return self._call(reshard.mindspore.rank_list_for_transform, rank,
                          self.strategies.get("src"), self.strategies.get("dst"))[1]

    def _same_rows(self, expected, found, what):
        """Compares rows by name and in order."""
        if [row[0] for row in expected] != [row[0] for row in found]:
            self.failures.append(f"{what}: MindSpore has {[row[0] for row in expected]}, reshard "
                                 f"{[row[0] for row in found]}")
            return
        for wanted, row in zip(expected, found):
            self.tensors += 1
            if wanted != row:
                self.failures.append(f"{what}: {row[0]}: {wanted[1]}{wanted[2]} in MindSpore, "
                                     f"{row[1]}{row[2]} in reshard, or other bytes")

    def _compare_loads(self):
        """Loads every file that was written, by both."""
        for path in sorted(self.expected.glob("rank_*/*.ckpt")):
            self._same_rows(mindspore_side.load(path), loaded(path), path.name)

    def _compare_saves(self, rng):
        """Saves the Parameters of one file by both: the same bytes, also with a CRC; with a key,
        each loads what the other one encrypted."""
        path = next(self.expected.glob("rank_*/*.ckpt"))
        saved = [{"name": name, "data": parameter}
                 for name, parameter in mindspore.load_checkpoint(str(path)).items()]
        mode = rng.choice(("AES-GCM", "AES-CBC", "SM4-CBC"))
        key = rng.randbytes(16)
        for number, options in enumerate(({}, {"crc_check": True},
                                          {"enc_key": key, "enc_mode": mode})):
            files = [self.folder / f"{side}_{number}.ckpt" for side in ("theirs", "ours")]
            mindspore.save_checkpoint(saved, str(files[0]), **options)
            reshard.mindspore.save_checkpoint(saved, files[1], **options)
            if not options.get("enc_key"):
                self._same_file(*files, f"saved with {options}")
                continue
            keys = {"dec_key": key, "dec_mode": mode}
            ours = reshard.mindspore.load_checkpoint(files[0], **keys)
            theirs = mindspore.load_checkpoint(str(files[1]), **keys)
            self._same_rows([_row(*pair) for pair in theirs.items()],
                            [_row(*pair) for pair in ours.items()], mode)

    def _compare_store(self):
        """Whole tensors, as MindSpore makes them and as the store reads them."""
        source = self.folder / "src"
        whole = source / "rank_0" / "net-1_100.ckpt"
        if self.case.source:
            mindspore_side.convert(source, self.folder / "whole", PREFIX,
                                   self.strategies["src"], None)
            whole = self.folder / "whole" / "rank_0" / f"{PREFIX}0.ckpt"
        expected = mindspore_side.load(whole)
        with reshard.open(source, self.strategies.get("src")) as store:
            found = [(name, store[name].dtype_name, list(store[name].shape),
                      np.ascontiguousarray(store[name][...]).tobytes())
                     for name, *_ in expected if name in store]
        self._same_rows(expected, found, "store")
