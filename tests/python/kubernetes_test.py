"""The Kubernetes file of docs/examples fits Kubernetes' own schema, and says what the page says."""

import pathlib
import re

import pytest

kubernetes_validate = pytest.importorskip("kubernetes_validate")
yaml = pytest.importorskip("yaml")

ROOT = pathlib.Path(__file__).parents[2]
OLDEST = "1.29"  # where backoffLimitPerIndex is on by default


@pytest.fixture
def jobs():
    file = ROOT / "docs" / "examples" / "kubernetes_convert_then_train.yaml"
    return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("version", (OLDEST, kubernetes_validate.latest_version().removesuffix(".0")))
def test_the_file_fits_the_schema(jobs, version):
    assert [job["kind"] for job in jobs] == ["Job", "Job"]
    for job in jobs:
        assert kubernetes_validate.validate(job, version, strict=True) == version
    for name, value in (("backoffLimitPerIndexes", 3), ("ttlSecondsAfterFinished", "a day")):
        jobs[0]["spec"][name] = value
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(jobs[0], version, strict=True)
        del jobs[0]["spec"][name]


def test_the_file_keeps_the_rules_that_the_schema_lacks(jobs):
    spec = jobs[0]["spec"]
    pod = spec["template"]["spec"]
    # What backoffLimitPerIndex and podFailurePolicy ask for.
    assert spec["completionMode"] == "Indexed" and pod["restartPolicy"] == "Never"
    assert spec["maxFailedIndexes"] <= spec["completions"] and spec["ttlSecondsAfterFinished"] > 0
    [container] = pod["containers"]
    assert container["env"] == [{"name": "JOB_COMPLETIONS", "value": str(spec["completions"])}]
    rules = spec["podFailurePolicy"]["rules"]
    [failing] = [rule["onExitCodes"] for rule in rules if rule["action"] == "FailJob"]
    assert failing["containerName"] == container["name"]
    page = (ROOT / "docs" / "reference" / "exit_codes.md").read_text(encoding="utf-8")
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    # Success, a difference, and what another try may mend: I/O, another process, a signal.
    assert set(failing["values"]) == codes - {0, 1, 4, 6, 130}
